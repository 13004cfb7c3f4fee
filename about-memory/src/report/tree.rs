//! A tree as it is shown: children sorted, the tiny ones gathered, what is invalid marked and in sight.

mod arrange;

use super::amount::Amount;
use super::numbers::{Bytes, Unit, size};
use super::order::{self, Names};
use super::report_tree::node::NodeId;
use super::report_tree::{Presence, ReportTree, shown_name};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::str::FromStr;

/// How a report is shown. The default is what Firefox's page does at first.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Everything in sight, and in bytes.
    pub is_verbose: bool,
    /// Whether the amounts are differences: negative ones are as good as positive ones.
    pub is_diff: bool,
    /// How bytes are printed, if not as Firefox does.
    pub bytes: Option<Bytes>,
    /// From where on a node is worth a line of its own, if not from 1 %.
    pub threshold: Option<Threshold>,
    /// How many levels are in sight; a root is the first.
    pub depth: Option<usize>,
    /// Whether children are sorted by name and not by amount.
    pub by_name: bool,
}

/// The threshold amount that is worth a line of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// So many, in the unit of the tree.
    Amount(f64),
    /// So many hundredths of the tree's total.
    Percent(f64),
}

impl FromStr for Threshold {
    type Err = String;

    /// Parses an amount (`64K`) or a share of the tree (`0.1%`).
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%') {
            Some(percent) => match percent.trim().parse::<f64>() {
                Ok(percent) if percent >= 0.0 => Ok(Threshold::Percent(percent)),
                _ => Err("write it as `0.5%`".into()),
            },
            None => size::parse_bytes(text).map(Threshold::Amount),
        }
    }
}

impl Settings {
    /// How bytes are printed.
    pub fn bytes(&self) -> Bytes {
        self.bytes.unwrap_or(if self.is_verbose { Bytes::Plain } else { Bytes::Mb })
    }

    /// From where on a node is worth a line of its own; nowhere, where all are.
    fn threshold(&self) -> Option<Threshold> {
        self.threshold.or((!self.is_verbose).then_some(Threshold::Percent(1.0)))
    }
}

/// One line of a tree.
#[derive(Clone, Debug)]
pub struct Item {
    /// The name as the file has it, with that of single children it has absorbed.
    pub name: String,
    /// The name as people read it, where that is more than turning backslashes round.
    literal: Option<String>,
    /// The sum of all at or below it.
    pub amount: Amount,
    /// The lines below it, as indices into the tree's items.
    pub children: Vec<usize>,
    /// Whether its children are in sight.
    pub shows_children: bool,
    /// Whether it is marked as open; an invalid node is, even if its children are not in sight.
    pub is_open: bool,
    /// Whether the amount is negative, or greater than the root's.
    pub is_invalid: bool,
    /// How many reports were added up in it, if more than one.
    pub merged: u32,
    /// In which of two files it stands.
    pub presence: Presence,
    /// The node it shows; none for `(3 tiny)`.
    node: Option<NodeId>,
    /// The greatest amount at or below it, without sign.
    weight: f64,
}

impl Item {
    /// The name as people read it.
    pub fn shown_name(&self) -> Cow<'_, str> {
        self.literal.as_deref().map_or_else(|| shown_name(&self.name), Cow::Borrowed)
    }

    /// Whether it stands for several nodes too small to see.
    pub fn is_aggregate(&self) -> bool {
        self.node.is_none()
    }
}

/// A tree, ready to be drawn. The first item is the root.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The lines; who is below whom is said by their `children`.
    pub items: Vec<Item>,
    /// The unit of all amounts.
    pub unit: Unit,
    /// Whether it is a single measurement, outside any tree: it has no share of anything.
    pub is_flat: bool,
    /// The paths of all invalid items as people read them, in the order of drawing.
    pub invalid: Vec<String>,
}

impl Tree {
    /// The tree that grows from `root`.
    pub(crate) fn new(
        report_tree: &ReportTree,
        root: NodeId,
        names: &Names,
        settings: &Settings,
    ) -> Self {
        let unit = report_tree.node(root).unit;
        let mut tree = Tree {
            items: arrange::arrange(report_tree, root, names, settings),
            unit,
            is_flat: false,
            invalid: Vec::new(),
        };
        if !settings.is_diff {
            tree.find_invalid();
        }
        tree.open_and_close(settings);
        if settings.by_name {
            tree.sort_by_name(names);
        }
        tree
    }

    /// A single measurement, outside any tree.
    pub(crate) fn flat(report_tree: &ReportTree, node: NodeId, settings: &Settings) -> Self {
        let items = vec![arrange::item(report_tree, node, 0.0)];
        let mut tree =
            Tree { items, unit: report_tree.node(node).unit, is_flat: true, invalid: Vec::new() };
        if !settings.is_diff {
            tree.find_invalid();
        }
        tree
    }

    /// The root.
    pub fn root(&self) -> &Item {
        &self.items[0]
    }

    /// All items, parents before children, as they are drawn.
    pub(crate) fn drawing_order(&self) -> Vec<Step> {
        let mut order = Vec::with_capacity(self.items.len());
        let mut todo = vec![Step { item: 0, depth: 0 }];
        while let Some(step) = todo.pop() {
            order.push(step);
            todo.extend(
                self.items[step.item]
                    .children
                    .iter()
                    .rev()
                    .map(|&item| Step { item, depth: step.depth + 1 }),
            );
        }
        order
    }

    /// What the report of a line says of itself; empty for sums.
    pub(crate) fn description<'f>(&self, report_tree: &'f ReportTree, item: usize) -> &'f str {
        self.items[item].node.map_or("", |node| report_tree.description(node))
    }

    /// Marks what is negative or greater than the root, and notes its path.
    fn find_invalid(&mut self) {
        let total = self.root().amount.clone();
        let mut path = String::new();
        let mut ends: Vec<usize> = Vec::new();
        for step in self.drawing_order() {
            let item = &mut self.items[step.item];
            ends.truncate(step.depth);
            path.truncate(ends.last().copied().unwrap_or(0));
            if step.depth > 0 {
                path.push('/');
            }
            path.push_str(&item.shown_name());
            ends.push(path.len());
            item.is_invalid = !is_between(&item.amount, &total);
            if item.is_invalid {
                self.invalid.push(path.clone());
            }
        }
    }

    /// Closes what lies too deep, and opens the way to all that is invalid.
    fn open_and_close(&mut self, settings: &Settings) {
        let mut holds_invalid = vec![false; self.items.len()];
        // From the last line to the first: children before their parents.
        for step in self.drawing_order().iter().rev() {
            let below = self.items[step.item].children.iter().any(|&child| holds_invalid[child]);
            let item = &mut self.items[step.item];
            holds_invalid[step.item] = below || item.is_invalid;
            item.shows_children &= settings.depth.is_none_or(|depth| step.depth + 1 < depth);
            item.is_open = item.shows_children;
            if !settings.is_verbose {
                item.shows_children |= below;
                item.is_open |= below || item.is_invalid;
            }
        }
    }

    fn sort_by_name(&mut self, names: &Names) {
        for index in 0..self.items.len() {
            let mut children = std::mem::take(&mut self.items[index].children);
            order::sort_by(&mut children, |a, b| {
                names.compare(&self.items[a].name, &self.items[b].name)
            });
            self.items[index].children = children;
        }
    }
}

/// A line, and how far it is from the root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) item: usize,
    pub(crate) depth: usize,
}

/// `0 <= amount && amount <= total`.
fn is_between(amount: &Amount, total: &Amount) -> bool {
    let not_after =
        |a: &Amount, b: &Amount| matches!(a.compare(b), Some(Ordering::Less | Ordering::Equal));
    not_after(&Amount::Number(0.0), amount) && not_after(amount, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_an_amount_or_a_share() {
        assert_eq!("0.5%".parse(), Ok(Threshold::Percent(0.5)));
        assert_eq!("1K".parse(), Ok(Threshold::Amount(1024.0)));
    }
}
