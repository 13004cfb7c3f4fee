//! Arranges a tree for display: sorts children, aggregates tiny ones, marks invalid ones.

mod arrange;

use super::amount::Amount;
use super::numbers::{Bytes, Unit, size};
use super::order::{self, Names};
use super::report_tree::node::NodeId;
use super::report_tree::{Presence, ReportTree, shown_name};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::str::FromStr;

/// Settings of the display. The default equals Firefox's page, but for the program's reporters.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// True to show all nodes, and amounts in bytes.
    pub is_verbose: bool,
    /// True if the amounts are differences: negative ones are valid.
    pub is_diff: bool,
    /// The format of bytes, if not as in Firefox.
    pub bytes: Option<Bytes>,
    /// The smallest amount with a line of its own, if not 1 %. Without one, the program's own
    /// reporters have lines of their own too.
    pub threshold: Option<Threshold>,
    /// The number of visible levels; a root is the first.
    pub depth: Option<usize>,
    /// True to sort children by name instead of amount.
    pub by_name: bool,
}

/// The smallest amount with a line of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// An amount in the unit of the tree.
    Amount(f64),
    /// A percentage of the tree's total.
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
    /// Returns the format of bytes.
    pub fn bytes(&self) -> Bytes {
        self.bytes.unwrap_or(if self.is_verbose { Bytes::Plain } else { Bytes::Mb })
    }

    /// Returns whether the program's own reporters have lines, however small their amounts are.
    fn keeps_reporters(&self) -> bool {
        self.threshold.is_none() && !self.is_diff
    }

    /// Returns the smallest amount with a line of its own; `None` if all nodes have one.
    fn threshold(&self) -> Option<Threshold> {
        self.threshold.or((!self.is_verbose).then_some(Threshold::Percent(1.0)))
    }
}

/// One line of a tree.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own on a line")]
pub struct Item {
    /// The name as in the file, joined with the names of absorbed children.
    pub name: String,
    /// The name for people, if it is not the same with backslashes turned into slashes.
    literal: Option<String>,
    /// The sum of all reports at or below it.
    pub amount: Amount,
    /// The lines below it, as indices into the tree's items.
    pub children: Vec<usize>,
    /// True if its children are visible.
    pub shows_children: bool,
    /// True if it is marked as open. An invalid node is, even without visible children.
    pub is_open: bool,
    /// True if the amount is negative, or greater than the root's.
    pub is_invalid: bool,
    /// The number of reports that were added up; 0 for one.
    pub merged: u32,
    /// The files that contain it.
    pub presence: Presence,
    /// The node of the line; `None` for `(3 tiny)`.
    node: Option<NodeId>,
    /// True if a reporter of the program's reports at or below it.
    has_reporter: bool,
    /// The largest amount at or below it, without sign.
    weight: f64,
}

impl Item {
    /// Returns the name for people.
    pub fn shown_name(&self) -> Cow<'_, str> {
        self.literal.as_deref().map_or_else(|| shown_name(&self.name), Cow::Borrowed)
    }

    /// Returns whether it stands for several tiny nodes.
    pub fn is_aggregate(&self) -> bool {
        self.node.is_none()
    }
}

/// A tree that is ready to be drawn. The first item is the root.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The lines. Their `children` give the structure.
    pub items: Vec<Item>,
    /// The unit of all amounts.
    pub unit: Unit,
    /// True for a single measurement outside any tree, which has no share.
    pub is_flat: bool,
    /// The paths of all invalid items for people, in the order of drawing.
    pub invalid: Vec<String>,
}

impl Tree {
    /// Arranges the tree below `root`.
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

    /// Makes a single measurement, outside any tree.
    pub(crate) fn flat(report_tree: &ReportTree, node: NodeId, settings: &Settings) -> Self {
        let items = vec![arrange::item(report_tree, node, 0.0)];
        let mut tree =
            Tree { items, unit: report_tree.node(node).unit, is_flat: true, invalid: Vec::new() };
        if !settings.is_diff {
            tree.find_invalid();
        }
        tree
    }

    /// Returns the root.
    pub fn root(&self) -> &Item {
        &self.items[0]
    }

    /// Returns all items in the order of drawing, parents before children.
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

    /// Returns the description of an item's report; empty for sums.
    pub(crate) fn description<'f>(&self, report_tree: &'f ReportTree, item: usize) -> &'f str {
        self.items[item].node.map_or("", |node| report_tree.description(node))
    }

    /// Marks items that are negative or greater than the root, and collects their paths.
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

    /// Closes items below the depth limit, and opens the ancestors of invalid items.
    fn open_and_close(&mut self, settings: &Settings) {
        let mut holds_invalid = vec![false; self.items.len()];
        // Backwards, children come before their parents.
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

/// An item and its distance from the root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) item: usize,
    pub(crate) depth: usize,
}

/// Returns whether `0 <= amount && amount <= total`.
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
