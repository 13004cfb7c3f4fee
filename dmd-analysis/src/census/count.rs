//! The counting: every item goes down one way of the breakdown, or several at once, and is added up wherever it comes by.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::breakdown::{Axis, Breakdown};
use super::item::{Amount, Item, Source, State, age_group, mark, size_class};
use super::node::{Blocks, Bucketed, Census, Counted, Group, Key, Node};

/// A census while it is taken. What blocks amount to is the same at every place, by whatever they are told apart.
#[derive(Debug)]
pub struct Counting {
    breakdown: Breakdown,
    plan: Plan,
    count: Count,
}

impl Counting {
    /// Begins a census of no blocks.
    #[must_use]
    pub fn new(breakdown: &Breakdown) -> Self {
        let mut plan = Plan::default();
        let top = plan.step(breakdown);
        let count = Count::new(top, plan.axes.len());
        Counting { breakdown: breakdown.clone(), plan, count }
    }

    /// Counts the blocks of `item`. Asks `source` for the names of groups that are new.
    pub fn add(&mut self, item: &Item, source: &mut impl Source) {
        self.count.add(0, item, &self.plan, source);
    }

    /// Ends the census. `notes` are sentences about what its source could not find out.
    #[must_use]
    pub fn into_census(self, is_sampled: bool, notes: Vec<String>) -> Census {
        Census {
            root: self.count.finish(&self.plan),
            breakdown: self.breakdown,
            is_sampled,
            is_difference: false,
            notes,
        }
    }
}

/// A breakdown with a number for each of its places.
#[derive(Debug, Default)]
struct Plan {
    steps: Vec<Step>,
    /// Each once: what is asked in several places is found out once.
    axes: Vec<Axis>,
}

#[derive(Debug)]
enum Step {
    Count,
    Bucket(usize),
    Coarse([usize; 4]),
    Split {
        axis: usize,
        then: usize,
        missing: Option<(&'static str, usize)>,
    },
    /// And what each is by.
    Several(Vec<(Key, usize)>),
}

impl Plan {
    fn step(&mut self, breakdown: &Breakdown) -> usize {
        let step = match breakdown {
            Breakdown::Count(_) => Step::Count,
            Breakdown::Bucket(bucket) => {
                Step::Bucket(usize::try_from(bucket.limit).unwrap_or(usize::MAX))
            }
            Breakdown::CoarseType(coarse) => {
                Step::Coarse([0, 1, 2, 3].map(|state: usize| self.step(&coarse.of[state])))
            }
            Breakdown::Several(several) => {
                let one = |one: &Breakdown| (Key::text(one.name()), self.step(one));
                Step::Several(several.iter().map(one).collect())
            }
            Breakdown::Split(split) => {
                let known = self.axes.iter().position(|axis| *axis == split.axis);
                let axis = known.unwrap_or_else(|| {
                    self.axes.push(split.axis.clone());
                    self.axes.len() - 1
                });
                let missing = split.axis.missing();
                Step::Split {
                    axis,
                    then: self.step(&split.then),
                    missing: missing.map(|name| (name, self.step(&split.missing))),
                }
            }
        };
        self.steps.push(step);
        self.steps.len() - 1
    }
}

/// What has been counted.
#[derive(Debug)]
struct Count {
    /// The first is the root.
    tallies: Vec<Tally>,
    /// By the tally that it is in, and the number of the answer.
    within: HashMap<(u32, u32), u32, BuildHasherDefault<Words>>,
    /// Those of each axis.
    answers: Vec<Answers>,
}

/// Blocks that came to one place.
#[derive(Debug)]
struct Tally {
    step: usize,
    amount: Amount,
    listed: Vec<Blocks>,
}

/// The answers to one question.
#[derive(Debug, Default)]
struct Answers {
    /// By what decides the answer.
    known: HashMap<u64, u32, BuildHasherDefault<Words>>,
    numbers: HashMap<Key, u32>,
    keys: Vec<Key>,
}

/// The number of no answer.
const MISSING: u32 = u32::MAX;

impl Count {
    fn new(top: usize, axes: usize) -> Self {
        let root = Tally { step: top, amount: Amount::default(), listed: Vec::new() };
        let answers = (0..axes).map(|_| Answers::default()).collect();
        Count { tallies: vec![root], within: HashMap::default(), answers }
    }

    fn add(&mut self, tally: u32, item: &Item, plan: &Plan, source: &mut impl Source) {
        let mut at = tally;
        loop {
            let tally = &mut self.tallies[at as usize];
            tally.amount.add(&item.amount);
            let (key, step) = match &plan.steps[tally.step] {
                Step::Count => return,
                Step::Bucket(limit) => {
                    let Item { amount, size, slop, age_ms, address, .. } = *item;
                    tally.listed.push(Blocks { address, amount, size, slop, age_ms });
                    if tally.listed.len() > limit.saturating_mul(2).max(1024) {
                        cut(&mut tally.listed, *limit);
                    }
                    return;
                }
                Step::Coarse(of) => (item.state as u32, of[item.state as usize]),
                Step::Split { axis, then, missing } => {
                    let answer = self.answers[*axis].number(&plan.axes[*axis], item, source);
                    let step = if answer == MISSING {
                        missing.map_or(*then, |(_, step)| step)
                    } else {
                        *then
                    };
                    (answer, step)
                }
                Step::Several(several) => {
                    for (key, (_, step)) in (0..).zip(several) {
                        let inner = self.inner(at, key, *step);
                        self.add(inner, item, plan, source);
                    }
                    return;
                }
            };
            at = self.inner(at, key, step);
        }
    }

    /// The tally of blocks with this answer, in another.
    fn inner(&mut self, around: u32, key: u32, step: usize) -> u32 {
        let tallies = &mut self.tallies;
        *self.within.entry((around, key)).or_insert_with(|| {
            tallies.push(Tally { step, amount: Amount::default(), listed: Vec::new() });
            u32::try_from(tallies.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn finish(mut self, plan: &Plan) -> Node {
        let mut within: Vec<(u32, u32, u32)> =
            self.within.drain().map(|((around, key), inner)| (around, key, inner)).collect();
        within.sort_unstable();
        let mut finished = Finished { plan, tallies: self.tallies, within, answers: &self.answers };
        finished.node(0)
    }
}

impl Answers {
    #[inline]
    fn number(&mut self, axis: &Axis, item: &Item, source: &mut impl Source) -> u32 {
        let mark = mark(axis, item);
        if let Some(&number) = self.known.get(&mark) {
            return number;
        }
        let key = match axis {
            Axis::SizeClass => Some(Key::Text(size_class(item.size).into())),
            Axis::Age { edges } => item.age_ms.map(|age| Key::Text(age_group(edges, age).into())),
            _ => source.key(axis, item),
        };
        // In an object the two would be one.
        let key = key.map(|key| match (key, axis.missing()) {
            (Key::Text(text), Some(missing)) if *text == *missing => {
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
        self.known.insert(mark, number);
        number
    }
}

/// What has been counted, while it is put in order.
struct Finished<'p> {
    plan: &'p Plan,
    tallies: Vec<Tally>,
    /// Tally, answer, and the tally of that; sorted.
    within: Vec<(u32, u32, u32)>,
    answers: &'p [Answers],
}

impl Finished<'_> {
    fn node(&mut self, at: u32) -> Node {
        let tally = &mut self.tallies[at as usize];
        let (step, amount) = (tally.step, tally.amount);
        let listed = std::mem::take(&mut tally.listed);
        self.made(step, amount, listed, Some(at))
    }

    /// The node at a place to which no block has come: what is always there is there.
    fn empty(&mut self, step: usize) -> Node {
        self.made(step, Amount::default(), Vec::new(), None)
    }

    fn made(&mut self, step: usize, amount: Amount, listed: Vec<Blocks>, at: Option<u32>) -> Node {
        let plan = self.plan;
        let counted = match &plan.steps[step] {
            Step::Count => Counted::Count,
            Step::Bucket(limit) => Counted::Bucket(bucketed(listed, *limit, amount)),
            Step::Coarse(of) => {
                let groups = (0..).zip(State::NAMES).zip(of).map(|((key, name), step)| Group {
                    key: Key::Fixed(name),
                    node: self.at_or_empty(at, key, *step),
                });
                Counted::Groups(groups.collect())
            }
            Step::Several(several) => {
                let groups = (0..).zip(several).map(|(number, (key, step))| Group {
                    key: key.clone(),
                    node: self.at_or_empty(at, number, *step),
                });
                Counted::Several(groups.collect())
            }
            Step::Split { axis, missing, .. } => Counted::Groups(self.groups(*axis, *missing, at)),
        };
        Node { amount, counted }
    }

    fn at_or_empty(&mut self, around: Option<u32>, key: u32, step: usize) -> Node {
        let found = around.and_then(|around| {
            let place =
                self.within.binary_search_by_key(&(around, key), |entry| (entry.0, entry.1));
            Some(self.within[place.ok()?].2)
        });
        match found {
            Some(inner) => self.node(inner),
            None => self.empty(step),
        }
    }

    fn groups(
        &mut self,
        axis: usize,
        missing: Option<(&'static str, usize)>,
        at: Option<u32>,
    ) -> Vec<Group> {
        let mut groups = Vec::new();
        if let Some(at) = at {
            let first = self.within.partition_point(|entry| entry.0 < at);
            let here = self.within[first..].partition_point(|entry| entry.0 == at);
            for place in first..first + here {
                let (_, key, inner) = self.within[place];
                if key != MISSING {
                    let key = self.answers[axis].keys[key as usize].clone();
                    groups.push(Group { key, node: self.node(inner) });
                }
            }
        }
        sort(&mut groups);
        if let Some((name, step)) = missing {
            let node = self.at_or_empty(at, MISSING, step);
            groups.push(Group { key: Key::Fixed(name), node });
        }
        groups
    }
}

/// Most bytes first; of the same bytes, by name.
pub(super) fn sort(groups: &mut [Group]) {
    groups.sort_by(|a, b| {
        (b.node.amount.bytes, b.node.amount.count)
            .cmp(&(a.node.amount.bytes, a.node.amount.count))
            .then_with(|| a.key.cmp(&b.key))
    });
}

fn bucketed(mut listed: Vec<Blocks>, limit: usize, all: Amount) -> Bucketed {
    cut(&mut listed, limit);
    let mut left_out = all;
    listed.iter().for_each(|blocks| left_out.subtract(&blocks.amount));
    Bucketed { listed, left_out }
}

/// Keeps the `limit` lines with the most bytes.
fn cut(listed: &mut Vec<Blocks>, limit: usize) {
    listed.sort_by_key(|Blocks { address, amount, size, slop, age_ms }| {
        (Reverse((amount.bytes, amount.count)), *address, *size, *slop, *age_ms)
    });
    listed.truncate(limit);
}

/// Hashes one or two small numbers: they are our own, so that nobody chooses them badly.
#[derive(Default)]
struct Words(u64);

impl Hasher for Words {
    fn finish(&self) -> u64 {
        let product = u128::from(self.0) * 0x9e37_79b9_7f4a_7c15;
        #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
        let (low, high) = (product as u64, (product >> 64) as u64);
        low ^ high
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = self.0.rotate_left(32) ^ u64::from(number);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}
