//! Cycles that nothing outside of them points at: how many there are alike, and the shortest path
//! round each.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::kinds::frame;
use super::roots::{ExternalRoot, HandleCount};
use super::{NONE, Retention, Step};

/// A group of equal cycles.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Cycle {
    /// The number of such cycles.
    pub count: u64,
    /// The number of blocks in one of them.
    pub blocks: u64,
    /// The bytes that all of them retain.
    pub retained: u64,
    /// The external root that holds them.
    pub external: ExternalRoot,
    /// The result of comparing their counts with their handles.
    pub handles: HandleCount,
    /// The shortest path round one of them: the last step leads back to the first block.
    pub steps: Vec<Step>,
    /// The program's own frame that allocated the first block.
    pub site: Option<String>,
}

/// The sums of equal cycles.
struct Alike {
    count: u64,
    retained: u64,
    /// The number of the first of them.
    first: usize,
}

/// The number of blocks of a cycle, and their kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CycleKey {
    blocks: usize,
    kinds: Vec<usize>,
}

impl Retention<'_> {
    /// Returns the cycles that nothing outside of them points at, with equal ones grouped.
    ///
    /// Leaks come first, and larger cycles before smaller ones.
    #[must_use]
    pub fn cycles(&self) -> Vec<Cycle> {
        let mut alike: FxHashMap<_, Alike> = FxHashMap::default();
        let first = self.dump.blocks.len() + self.roots.statics.len();
        let nodes = u32::try_from(first).unwrap_or(NONE)..;
        for ((at, cycle), node) in self.roots.cycles.iter().enumerate().zip(nodes) {
            let key = (cycle.external, cycle.handles, self.cycle_key(at));
            let sum = alike.entry(key).or_insert(Alike { count: 0, retained: 0, first: at });
            sum.count += 1;
            sum.retained = sum.retained.saturating_add(self.retained.get(node));
        }
        let mut cycles: Vec<_> = alike.into_iter().collect();
        let order = |handles| match handles {
            HandleCount::Leaked => 0,
            HandleCount::Unknown => 1,
            HandleCount::Outside(_) => 2,
        };
        cycles.sort_unstable_by_key(|((external, handles, _), sum)| {
            let root = &self.roots.external[*external as usize];
            let is_known = !matches!(root, ExternalRoot::Unknown | ExternalRoot::Nothing);
            (is_known, order(*handles), Reverse(sum.retained), sum.first)
        });
        let cycle = |sum: Alike| {
            let cycle = &self.roots.cycles[sum.first];
            let steps = self.round(&cycle.blocks);
            let alloc = steps.first().and_then(|step| step.block());
            let site = alloc.map(|block| self.sites.get(self.dump.blocks.at(block).kind.alloc));
            Cycle {
                count: sum.count,
                blocks: cycle.blocks.len() as u64,
                retained: sum.retained,
                external: self.roots.external[cycle.external as usize].clone(),
                handles: cycle.handles,
                site: site.and_then(frame).cloned(),
                steps,
            }
        };
        cycles.into_iter().map(|(_, sum)| cycle(sum)).collect()
    }

    /// Returns the key of a cycle, by which equal cycles are grouped.
    pub(crate) fn cycle_key(&self, cycle: usize) -> CycleKey {
        let blocks = &self.roots.cycles[cycle].blocks;
        let kind = |&block: &u32| self.kinds.of(self, block as usize);
        let mut kinds: Vec<usize> = blocks.iter().map(kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        CycleKey { blocks: blocks.len(), kinds }
    }

    /// Returns the shortest path from the first block back to itself.
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
            for target in self.targets(node).into_iter().filter(|node| inside.contains(node)) {
                before.entry(target).or_insert_with(|| {
                    queue.push(target);
                    node
                });
            }
        }
        // A block that points at itself has no edge of the graph.
        let mut path = vec![start, before.get(&start).copied().unwrap_or(start)];
        while let Some(&at) = path.last().filter(|&&at| at != start) {
            path.push(before.get(&at).copied().unwrap_or(start));
        }
        path.reverse();
        self.steps(&path)
    }
}
