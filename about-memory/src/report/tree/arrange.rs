//! Sorts the children of every node, and aggregates the tiny ones.

use super::{Item, Settings, Threshold};
use crate::report::amount::Amount;
use crate::report::order::{self, Names};
use crate::report::report_tree::node::NodeId;
use crate::report::report_tree::{Presence, ReportTree};
use std::cell::OnceCell;
use std::cmp::Ordering;

/// The number of children from which sort keys are faster than comparing names.
const MANY: usize = 256;

/// The most tiny children of a node that have lines because the program's own reporters report
/// there.
const MOST_TINY_REPORTERS: usize = 16;

/// Returns the items of the tree below `root`, which is the first.
pub(crate) fn arrange(
    report_tree: &ReportTree,
    root: NodeId,
    names: &Names,
    settings: &Settings,
) -> Vec<Item> {
    let mut all = Arrange {
        settings,
        names,
        total: report_tree.node(root).amount.clone(),
        items: Vec::new(),
    };
    all.gather(report_tree, root);
    let mut todo = vec![0];
    while let Some(parent) = todo.pop() {
        let children = all.arrange_children(parent);
        todo.extend(&children);
        // The children of an aggregate are arranged already.
        for child in children.into_iter().filter(|&child| all.items[child].is_aggregate()) {
            todo.retain(|&item| item != child);
            todo.extend(&all.items[child].children);
        }
    }
    all.items
}

/// Makes a line for a node, without its children.
pub(crate) fn item(report_tree: &ReportTree, id: NodeId, weight: f64) -> Item {
    let node = report_tree.node(id);
    Item {
        name: report_tree.name(id),
        literal: report_tree.literal_name(id),
        amount: node.amount.clone(),
        children: Vec::new(),
        shows_children: true,
        is_open: true,
        is_invalid: false,
        merged: node.merged,
        presence: node.presence,
        node: Some(id),
        has_reporter: node.has_reporter,
        weight,
    }
}

struct Arrange<'a> {
    settings: &'a Settings,
    names: &'a Names,
    total: Amount,
    items: Vec<Item>,
}

impl Arrange<'_> {
    /// Makes an item of every node of the tree, children in order of arrival.
    fn gather(&mut self, report_tree: &ReportTree, root: NodeId) {
        self.items.push(item(report_tree, root, 0.0));
        let mut next = 0;
        while next < self.items.len() {
            if let Some(id) = self.items[next].node {
                let first = self.items.len();
                self.items
                    .extend(report_tree.children_of(id).map(|child| item(report_tree, child, 0.0)));
                self.items[next].children = (first..self.items.len()).collect();
            }
            next += 1;
        }
        if self.settings.is_diff {
            // Backwards, children come before their parents, so their weights are complete.
            for index in (0..self.items.len()).rev() {
                self.items[index].weight =
                    self.weigh(self.items[index].amount.number(), &self.items[index].children);
            }
        }
    }

    /// Returns `Math.max` of the amounts without sign; NaN if one of them is.
    fn weigh(&self, amount: f64, children: &[usize]) -> f64 {
        children.iter().map(|&child| self.items[child].weight).fold(amount.abs(), |max, weight| {
            if max.is_nan() || weight.is_nan() { f64::NAN } else { max.max(weight) }
        })
    }

    /// Sorts the children of one node, and aggregates the tiny ones. Returns the children after
    /// that.
    fn arrange_children(&mut self, parent: usize) -> Vec<usize> {
        let mut children = std::mem::take(&mut self.items[parent].children);
        self.sort(&mut children);
        let (mut shown, tiny) = self.divide(&children);
        match tiny.len() {
            0 => {}
            // All are tiny: there is nothing to show beside an aggregate.
            _ if shown.is_empty() => self.items[parent].shows_children = false,
            // A single tiny child stays.
            1 => {}
            _ => {
                shown.push(self.gathering(tiny));
                self.sort(&mut shown);
                children = shown;
            }
        }
        self.items[parent].children.clone_from(&children);
        children
    }

    /// Divides sorted children into those with lines of their own, and the others: all from the
    /// first tiny one on, except the program's own reporters.
    fn divide(&self, children: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let first = children.iter().position(|&child| self.is_tiny(child));
        let (large, small) = children.split_at(first.unwrap_or(children.len()));
        let mut kept = if self.settings.keeps_reporters() { MOST_TINY_REPORTERS } else { 0 };
        let (reporters, tiny): (Vec<usize>, _) = small.iter().partition(|&&child| {
            let is_kept = kept > 0 && self.items[child].has_reporter;
            kept -= usize::from(is_kept);
            is_kept
        });
        ([large, &reporters].concat(), tiny)
    }

    fn gathering(&mut self, tiny: Vec<usize>) -> usize {
        let mut amount = Amount::Number(0.0);
        tiny.iter().for_each(|&child| amount.add(&self.items[child].amount));
        let weight = self.weigh(amount.number(), &tiny);
        self.items.push(Item {
            name: format!("({} tiny)", tiny.len()),
            literal: None,
            amount,
            children: tiny,
            shows_children: false,
            is_open: false,
            is_invalid: false,
            merged: 0,
            presence: Presence::Both,
            node: None,
            has_reporter: false,
            weight,
        });
        self.items.len() - 1
    }

    /// Sorts by amount, the largest first, then by name.
    fn sort(&self, children: &mut Vec<usize>) {
        if children.len() <= MANY {
            order::sort_by(children, |a, b| {
                let (a, b) = (&self.items[a], &self.items[b]);
                self.compare_amounts(a, b).unwrap_or_else(|| self.names.compare(&a.name, &b.name))
            });
            return;
        }
        let keys: Vec<OnceCell<Vec<u8>>> = vec![OnceCell::new(); children.len()];
        let key = |place: usize| {
            keys[place].get_or_init(|| self.names.key(&self.items[children[place]].name))
        };
        let mut places: Vec<usize> = (0..children.len()).collect();
        order::sort_by(&mut places, |a, b| {
            let amounts = self.compare_amounts(&self.items[children[a]], &self.items[children[b]]);
            amounts.unwrap_or_else(|| key(a).cmp(key(b)))
        });
        *children = places.into_iter().map(|place| children[place]).collect();
    }

    /// Returns `None` if the names decide.
    fn compare_amounts(&self, a: &Item, b: &Item) -> Option<Ordering> {
        let amounts = match self.settings.is_diff {
            true => b.weight.partial_cmp(&a.weight),
            false => b.amount.compare(&a.amount),
        };
        amounts.filter(|order| order.is_ne())
    }

    fn is_tiny(&self, item: usize) -> bool {
        let (amount, total) = match self.settings.is_diff {
            true => (self.items[item].weight, self.total.number().abs()),
            false => (self.items[item].amount.number(), self.total.number()),
        };
        match self.settings.threshold() {
            None => false,
            Some(Threshold::Percent(percent)) => 100.0 * amount / total < percent,
            Some(Threshold::Amount(threshold)) => amount.abs() < threshold,
        }
    }
}
