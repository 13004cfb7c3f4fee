//! The end of a census: builds the tree of nodes from the tallies.

use super::super::amount::Amount;
use super::super::node::{Blocks, Bucketed, Counted, Group, Node};
use super::plan::{Missing, Plan, Step};
use super::{Inner, Keys, MISSING, Tallies, Tally, cut, sort};
use crate::axis::{Key, ReportState};

/// The tallies of a census while they are put in order.
pub(super) struct Finish<'p> {
    plan: &'p Plan,
    tallies: Vec<Tally>,
    /// Sorted by place.
    within: Vec<Place>,
    keys: Vec<Keys>,
}

/// A tally within another.
struct Place {
    of: Inner,
    tally: u32,
}

impl<'p> Finish<'p> {
    pub(super) fn new(plan: &'p Plan, tallies: Tallies) -> Self {
        let Tallies { all, within, keys } = tallies;
        let mut within: Vec<Place> =
            within.into_iter().map(|(of, tally)| Place { of, tally }).collect();
        within.sort_unstable_by_key(|place| place.of);
        Finish { plan, tallies: all, within, keys }
    }

    /// Returns the node of all blocks.
    pub(super) fn root(mut self) -> Node {
        self.node(0)
    }

    fn node(&mut self, at: u32) -> Node {
        let tally = &mut self.tallies[at as usize];
        let listed = std::mem::take(&mut tally.listed);
        let tally = Tally { step: tally.step, amount: tally.amount, listed };
        self.built(tally, Some(at))
    }

    /// Builds the node of a tally, or without a number, of a place to which no block has come.
    fn built(&mut self, tally: Tally, at: Option<u32>) -> Node {
        let plan = self.plan;
        let Tally { step, amount, listed } = tally;
        let counted = match &plan.steps[step] {
            Step::Count => Counted::Count,
            Step::Bucket(limit) => Counted::Bucket(bucketed(listed, *limit, amount)),
            Step::State(of) => {
                let groups = (0..).zip(ReportState::NAMES).zip(of).map(|((key, name), step)| {
                    Group { key: Key::Fixed(name), node: self.at_or_empty(at, key, *step) }
                });
                Counted::Groups(groups.collect())
            }
            Step::Several(several) => {
                let groups = (0..).zip(several).map(|(number, one)| Group {
                    key: one.name.clone(),
                    node: self.at_or_empty(at, number, one.step),
                });
                Counted::Several(groups.collect())
            }
            Step::Split { axis, missing, .. } => Counted::Groups(self.groups(*axis, *missing, at)),
        };
        Node { amount, counted }
    }

    fn at_or_empty(&mut self, around: Option<u32>, key: u32, step: usize) -> Node {
        let found = around.and_then(|around| {
            let of = Inner { around, key };
            let place = self.within.binary_search_by_key(&of, |place| place.of);
            Some(self.within[place.ok()?].tally)
        });
        match found {
            Some(inner) => self.node(inner),
            None => self.built(Tally::new(step), None),
        }
    }

    fn groups(&mut self, axis: usize, missing: Option<Missing>, at: Option<u32>) -> Vec<Group> {
        let mut groups = Vec::new();
        if let Some(at) = at {
            let first = self.within.partition_point(|place| place.of.around < at);
            let here = self.within[first..].partition_point(|place| place.of.around == at);
            for number in first..first + here {
                let Place { of, tally } = self.within[number];
                if of.key != MISSING {
                    let key = self.keys[axis].keys[of.key as usize].clone();
                    groups.push(Group { key, node: self.node(tally) });
                }
            }
        }
        sort(&mut groups);
        if let Some(Missing { name, step }) = missing {
            let node = self.at_or_empty(at, MISSING, step);
            groups.push(Group { key: Key::Fixed(name), node });
        }
        groups
    }
}

fn bucketed(mut listed: Vec<Blocks>, limit: usize, all: Amount) -> Bucketed {
    cut(&mut listed, limit);
    let mut left_out = all;
    listed.iter().for_each(|blocks| left_out.subtract(&blocks.amount));
    Bucketed { listed, left_out }
}
