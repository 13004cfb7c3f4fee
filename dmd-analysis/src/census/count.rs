//! The counting engine: adds every item to each place of the breakdown that it passes.

mod plan;
mod finish;
mod hash;

use std::cmp::Reverse;
use std::collections::HashMap;

use super::amount::Amount;
use super::breakdown::{Breakdown, missing_name};
use super::item::{Item, deciding_number};
use super::node::{Blocks, Census, Group, UNTRACKED};
use crate::axis::{Attributes, Axis, Key, key};
use finish::Finish;
use hash::NumberMap;
use plan::{Plan, Step};

/// A census while it is taken. The total is the same at every level, whatever the axes are.
#[derive(Debug)]
pub struct Counting {
    breakdown: Breakdown,
    plan: Plan,
    tallies: Tallies,
}

impl Counting {
    /// Begins a census of no blocks.
    #[must_use]
    pub fn new(breakdown: &Breakdown) -> Self {
        let mut plan = Plan::default();
        let top = plan.add(breakdown);
        let tallies = Tallies::new(top, plan.axes.len());
        Counting { breakdown: breakdown.clone(), plan, tallies }
    }

    /// Counts the blocks of `item`. Looks up the keys of new groups in `source`.
    pub fn add(&mut self, item: &Item, source: &mut impl Attributes<Block = Item>) {
        self.tallies.add(0, item, &self.plan, source);
    }

    /// Ends the census. `notes` are sentences about facts that its source does not contain.
    #[must_use]
    pub fn into_census(self, is_sampled: bool, notes: Vec<String>) -> Census {
        Census {
            root: self.tallies.finish(&self.plan),
            breakdown: self.breakdown,
            is_sampled,
            is_difference: false,
            notes,
        }
    }
}

/// The amounts at all places that blocks have come to.
#[derive(Debug)]
struct Tallies {
    /// The first is the root.
    all: Vec<Tally>,
    /// The tallies within tallies.
    within: NumberMap<Inner, u32>,
    /// The keys of each axis.
    keys: Vec<Keys>,
}

/// A place within a tally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Inner {
    around: u32,
    key: u32,
}

/// The blocks at one place.
#[derive(Debug)]
struct Tally {
    step: usize,
    amount: Amount,
    listed: Vec<Blocks>,
}

/// The keys on one axis.
#[derive(Debug, Default)]
struct Keys {
    /// The numbers of keys by the [`deciding_number`] of items.
    known: NumberMap<u64, u32>,
    numbers: HashMap<Key, u32>,
    keys: Vec<Key>,
}

/// The number that stands for no key.
const MISSING: u32 = u32::MAX;

impl Tally {
    fn new(step: usize) -> Self {
        Tally { step, amount: Amount::default(), listed: Vec::new() }
    }
}

impl Tallies {
    fn new(top: usize, axes: usize) -> Self {
        let keys = (0..axes).map(|_| Keys::default()).collect();
        Tallies { all: vec![Tally::new(top)], within: NumberMap::default(), keys }
    }

    fn add(
        &mut self,
        tally: u32,
        item: &Item,
        plan: &Plan,
        source: &mut impl Attributes<Block = Item>,
    ) {
        let mut at = tally;
        loop {
            let tally = &mut self.all[at as usize];
            tally.amount.add(&item.amount);
            let (key, step) = match &plan.steps[tally.step] {
                Step::Count => return,
                Step::Bucket(limit) => {
                    tally.list(item, *limit);
                    return;
                }
                Step::State(of) => (item.state as u32, of[item.state as usize]),
                Step::Split { axis, then, missing } => {
                    let key = self.keys[*axis].number(&plan.axes[*axis], item, source);
                    let missing = missing.as_ref().filter(|_| key == MISSING);
                    (key, missing.map_or(*then, |missing| missing.step))
                }
                Step::Several(several) => {
                    for (key, one) in (0..).zip(several) {
                        let inner = self.inner(Inner { around: at, key }, one.step);
                        self.add(inner, item, plan, source);
                    }
                    return;
                }
            };
            at = self.inner(Inner { around: at, key }, step);
        }
    }

    /// Returns the number of a tally within another.
    fn inner(&mut self, place: Inner, step: usize) -> u32 {
        let all = &mut self.all;
        *self.within.entry(place).or_insert_with(|| {
            all.push(Tally::new(step));
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn finish(self, plan: &Plan) -> super::node::Node {
        Finish::new(plan, self).root()
    }
}

impl Tally {
    fn list(&mut self, item: &Item, limit: usize) {
        let Item { amount, size, slop, age_ms, address, .. } = *item;
        self.listed.push(Blocks { address, amount, size, slop, age_ms });
        if self.listed.len() > limit.saturating_mul(2).max(1024) {
            cut(&mut self.listed, limit);
        }
    }
}

impl Keys {
    /// Returns the number of the key of an item; [`MISSING`] if it has none.
    #[inline]
    fn number(
        &mut self,
        axis: &Axis,
        item: &Item,
        source: &mut impl Attributes<Block = Item>,
    ) -> u32 {
        let deciding = deciding_number(axis, item);
        if let Some(&number) = self.known.get(&deciding) {
            return number;
        }
        // A key may be spelt like the property for blocks without one, or for untracked blocks. In
        // JSON the two would coincide.
        let key = key(source, item, axis).map(|key| match (key, missing_name(axis)) {
            (Key::Text(text), Some(missing)) if [missing, UNTRACKED].contains(&&*text) => {
                Key::text(&format!("\"{text}\""))
            }
            (key, _) => key,
        });
        let number = key.map_or(MISSING, |key| {
            let next = u32::try_from(self.keys.len()).unwrap_or(MISSING);
            let keys = &mut self.keys;
            *self.numbers.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                next
            })
        });
        self.known.insert(deciding, number);
        number
    }
}

/// Sorts groups by bytes, the most first, and groups of the same bytes by name.
pub(super) fn sort(groups: &mut [Group]) {
    groups.sort_by(|a, b| {
        (b.node.amount.bytes, b.node.amount.count)
            .cmp(&(a.node.amount.bytes, a.node.amount.count))
            .then_with(|| a.key.cmp(&b.key))
    });
}

/// Keeps the `limit` lines with the most bytes.
fn cut(listed: &mut Vec<Blocks>, limit: usize) {
    listed.sort_by_key(|Blocks { address, amount, size, slop, age_ms }| {
        (Reverse((amount.bytes, amount.count)), *address, *size, *slop, *age_ms)
    });
    listed.truncate(limit);
}
