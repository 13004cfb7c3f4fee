//! A cycle that nothing outside points at: whether it is a leak, and the shortest way round.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::alike::frame;
use super::roots::Outside;
use super::{Holds, Step};
use crate::analysis::links::Ranges;
use crate::analysis::sites::Sites;
use crate::analysis::types::BlockType;
use crate::read::Dump;

/// What the counts of its `Rc`s and `Arc`s say of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Counted {
    /// Every handle that they count is in the cycle itself: it is leaked.
    Leaked,
    /// They count so many handles more than there are in blocks: something outside the heap holds it, or a handle was forgotten.
    Outside(u64),
    /// It has none, or they do not add up.
    Unknown,
}

/// Cycles that are alike.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Circle {
    /// How many such cycles there are.
    pub cycles: u64,
    /// The blocks that are in one of them.
    pub blocks: u64,
    /// What all of them retain, in bytes.
    pub retained: u64,
    /// What is known of who holds them.
    pub outside: Outside,
    /// What their counts say.
    pub counted: Counted,
    /// The shortest way round in one of them: the last step leads to the first block.
    pub steps: Vec<Step>,
    /// The program's own frame that allocated the first block.
    pub site: Option<String>,
}

/// Compares the counts in the shared blocks of a cycle with the handles that are in it.
///
/// A shared block begins with its count of strong handles, then that of weak ones, which has one more for all strong ones
/// together.
pub(crate) fn count(dump: &Dump, ranges: &Ranges, sites: &Sites, cycle: &[u32]) -> Counted {
    let is_shared = |block: u32| {
        let site = sites.get(dump.blocks[block as usize].alloc);
        matches!(&site.block_type, BlockType::Known(name)
            if name.starts_with("Rc<") || name.starts_with("Arc<"))
    };
    let mut handles: FxHashMap<u32, u64> = FxHashMap::default();
    handles.extend(cycle.iter().filter(|&&block| is_shared(block)).map(|&block| (block, 0)));
    for &block in cycle.iter().take(if handles.is_empty() { 0 } else { cycle.len() }) {
        ranges.each_link_of(dump, block, |link| {
            if let Some(handles) = handles.get_mut(&link.to) {
                *handles += 1;
            }
        });
    }
    let mut outside = 0;
    let mut is_known = !handles.is_empty();
    for (block, found) in handles {
        let counted = match ranges.words_of(dump, block) {
            [strong, weak, ..] if *strong > 0 && *weak > 0 => strong.checked_add(weak - 1),
            _ => None,
        };
        // More words than handles: some are no handles.
        match counted.and_then(|counted| counted.checked_sub(found)) {
            Some(more) => outside += more,
            None => is_known = false,
        }
    }
    match outside {
        _ if !is_known => Counted::Unknown,
        0 => Counted::Leaked,
        more => Counted::Outside(more),
    }
}

impl Holds<'_> {
    /// The cycles that nothing outside points at, alike ones together: those that are leaks come first, then the biggest.
    #[must_use]
    pub fn circles(&self) -> Vec<Circle> {
        // How many there are, what they retain, and the first.
        type Sum = (u64, u64, usize);
        let mut alike: FxHashMap<_, Sum> = FxHashMap::default();
        let first = self.dump.blocks.len() + self.roots.statics.len();
        for (at, cycle) in self.roots.cycles.iter().enumerate() {
            let key = (cycle.outside, cycle.counted, self.cycle_key(at));
            let sum = alike.entry(key).or_insert((0, 0, at));
            sum.0 += 1;
            sum.1 = sum.1.saturating_add(self.retained[first + at]);
        }
        let mut circles: Vec<_> = alike.into_iter().collect();
        let order = |counted| match counted {
            Counted::Leaked => 0,
            Counted::Unknown => 1,
            Counted::Outside(_) => 2,
        };
        circles.sort_unstable_by_key(|((outside, counted, _), (_, retained, at))| {
            let is_known = self.roots.outside[*outside as usize] != Outside::Unknown;
            (is_known, order(*counted), Reverse(*retained), *at)
        });
        let circle = |((_, counted, _), (cycles, retained, at)): ((u32, Counted, _), Sum)| {
            let cycle = &self.roots.cycles[at];
            let steps = self.round(&cycle.blocks);
            let alloc = steps.first().and_then(|step| step.block());
            let site = alloc.map(|block| self.sites.get(self.dump.blocks[block].alloc));
            Circle {
                cycles,
                blocks: cycle.blocks.len() as u64,
                retained,
                outside: self.roots.outside[cycle.outside as usize].clone(),
                counted,
                site: site.and_then(frame).cloned(),
                steps,
            }
        };
        circles.into_iter().map(circle).collect()
    }

    /// What makes cycles alike: how many blocks they have, and of which kinds.
    pub(crate) fn cycle_key(&self, cycle: usize) -> (usize, Vec<usize>) {
        let blocks = &self.roots.cycles[cycle].blocks;
        let kind = |&block: &u32| self.kinds.of(self, block as usize);
        let mut kinds: Vec<usize> = blocks.iter().map(kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        (blocks.len(), kinds)
    }

    /// The shortest way from the first block back to itself.
    fn round(&self, cycle: &[u32]) -> Vec<Step> {
        let Some(&start) = cycle.first() else { return Vec::new() };
        let inside: FxHashSet<u32> = cycle.iter().copied().collect();
        let mut before: FxHashMap<u32, u32> = FxHashMap::default();
        let mut queue = vec![start];
        let mut next = 0;
        while let Some(&node) = queue.get(next)
            && !before.contains_key(&start)
        {
            next += 1;
            for &target in self.graph.targets(node).iter().filter(|node| inside.contains(node)) {
                before.entry(target).or_insert_with(|| {
                    queue.push(target);
                    node
                });
            }
        }
        // A block that points at itself has no edge of the graph.
        let mut way = vec![start, before.get(&start).copied().unwrap_or(start)];
        while let Some(&at) = way.last().filter(|&&at| at != start) {
            way.push(before.get(&at).copied().unwrap_or(start));
        }
        way.reverse();
        self.steps(&way)
    }
}
