//! Sorts the kids of every node, and gathers the tiny ones.

use super::{Item, Least, Settings};
use crate::amount::Amount;
use crate::forest::{Forest, NodeId, Presence};
use crate::order::{self, Names};
use std::cell::OnceCell;
use std::cmp::Ordering;

/// From so many kids on, keys are made of names that are compared.
const MANY: usize = 256;

/// The items of the tree that grows from `root`, which is the first.
pub(super) fn arrange(
    forest: &Forest,
    root: NodeId,
    names: &Names,
    settings: &Settings,
) -> Vec<Item> {
    let mut all =
        Arrange { settings, names, total: forest.node(root).amount.clone(), items: Vec::new() };
    all.gather(forest, root);
    let mut todo = vec![0];
    while let Some(parent) = todo.pop() {
        let kids = all.arrange_kids(parent);
        todo.extend(&kids);
        // A gathering's own kids are arranged already.
        for kid in kids.into_iter().filter(|&kid| all.items[kid].is_aggregate()) {
            todo.retain(|&item| item != kid);
            todo.extend(&all.items[kid].kids);
        }
    }
    all.items
}

/// A line for a node, without its kids.
pub(super) fn item(forest: &Forest, id: NodeId, weight: f64) -> Item {
    let node = forest.node(id);
    Item {
        name: forest.name(id),
        literal: forest.literal_name(id),
        amount: node.amount.clone(),
        kids: Vec::new(),
        shows_kids: true,
        is_open: true,
        is_invalid: false,
        merged: node.merged,
        presence: node.presence,
        node: Some(id),
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
    /// Makes an item of every node of the tree, kids in order of arrival.
    fn gather(&mut self, forest: &Forest, root: NodeId) {
        self.items.push(item(forest, root, 0.0));
        let mut next = 0;
        while next < self.items.len() {
            if let Some(id) = self.items[next].node {
                let first = self.items.len();
                self.items.extend(forest.kids_of(id).map(|kid| item(forest, kid, 0.0)));
                self.items[next].kids = (first..self.items.len()).collect();
            }
            next += 1;
        }
        if self.settings.is_diff {
            // Kids come after their parents, so on the way back their weights are known.
            for index in (0..self.items.len()).rev() {
                self.items[index].weight =
                    self.weigh(self.items[index].amount.number(), &self.items[index].kids);
            }
        }
    }

    /// `Math.max` of amounts without sign: one that is no number makes the result none.
    fn weigh(&self, amount: f64, kids: &[usize]) -> f64 {
        kids.iter().map(|&kid| self.items[kid].weight).fold(amount.abs(), |max, weight| {
            if max.is_nan() || weight.is_nan() { f64::NAN } else { max.max(weight) }
        })
    }

    /// Sorts the kids of one node, and gathers the tiny ones; answers its kids as they are then.
    fn arrange_kids(&mut self, parent: usize) -> Vec<usize> {
        let mut kids = std::mem::take(&mut self.items[parent].kids);
        self.sort(&mut kids);
        match kids.iter().position(|&kid| self.is_tiny(kid)) {
            // All are tiny: nothing to gather them beside.
            Some(0) => self.items[parent].shows_kids = false,
            // The last one alone is no crowd.
            Some(first) if first + 1 < kids.len() => {
                let tiny = kids.split_off(first);
                kids.push(self.gathering(tiny));
                self.sort(&mut kids);
            }
            _ => {}
        }
        self.items[parent].kids.clone_from(&kids);
        kids
    }

    fn gathering(&mut self, tiny: Vec<usize>) -> usize {
        let mut amount = Amount::Number(0.0);
        tiny.iter().for_each(|&kid| amount.add(&self.items[kid].amount));
        let weight = self.weigh(amount.number(), &tiny);
        self.items.push(Item {
            name: format!("({} tiny)", tiny.len()),
            literal: None,
            amount,
            kids: tiny,
            shows_kids: false,
            is_open: false,
            is_invalid: false,
            merged: 0,
            presence: Presence::Both,
            node: None,
            weight,
        });
        self.items.len() - 1
    }

    /// By amount, the greatest first, then by name.
    fn sort(&self, kids: &mut Vec<usize>) {
        if kids.len() <= MANY {
            order::sort_by(kids, |a, b| {
                let (a, b) = (&self.items[a], &self.items[b]);
                self.compare_amounts(a, b).unwrap_or_else(|| self.names.compare(&a.name, &b.name))
            });
            return;
        }
        let keys: Vec<OnceCell<Vec<u8>>> = vec![OnceCell::new(); kids.len()];
        let key = |place: usize| {
            keys[place].get_or_init(|| self.names.key(&self.items[kids[place]].name))
        };
        let mut places: Vec<usize> = (0..kids.len()).collect();
        order::sort_by(&mut places, |a, b| {
            let amounts = self.compare_amounts(&self.items[kids[a]], &self.items[kids[b]]);
            amounts.unwrap_or_else(|| key(a).cmp(key(b)))
        });
        *kids = places.into_iter().map(|place| kids[place]).collect();
    }

    /// None where the names decide.
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
        match self.settings.least() {
            None => false,
            Some(Least::Percent(percent)) => 100.0 * amount / total < percent,
            Some(Least::Amount(least)) => amount.abs() < least,
        }
    }
}
