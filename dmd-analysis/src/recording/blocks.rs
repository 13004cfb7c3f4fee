//! The blocks of a recording, in columns: 20 bytes for each, where a [`Block`] has 64.

use std::hash::Hash;
use std::iter;

use rustc_hash::FxHashMap;

use super::{Block, Freed};

/// The blocks of a recording, in the order of their allocation.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    sites: Vec<u32>,
    /// By block, the number of its size.
    sizes: Vec<u32>,
    /// By block, the time of its allocation in microseconds, since that of its era.
    births: Vec<u32>,
    /// By block, its lifetime in microseconds; [`LIVES`] if it was not freed, [`LISTED`] if its end
    /// is in `listed`.
    lifetimes: Vec<u32>,
    /// By block, the number of the thread and the site that freed it.
    enders: Vec<u32>,
    all_sizes: Numbered<Size>,
    all_enders: Numbered<Ender>,
    eras: Vec<Era>,
    /// The ends of blocks that live for longer than a column can hold.
    listed: FxHashMap<usize, u64>,
}

/// The lifetime of a block that was not freed.
const LIVES: u32 = u32::MAX;

/// The lifetime of a block whose end is in a list.
const LISTED: u32 = u32::MAX - 1;

/// The size of blocks, and the number that each represents, which follows from the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Size {
    requested: u64,
    usable: u64,
    /// The bits of the weight, which is an `f64`.
    weight: u64,
}

/// The thread and the site that freed a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ender {
    thread: u32,
    site: u32,
}

/// Blocks whose births are counted from one time: there is one for each 71 minutes.
#[derive(Clone, Copy, Debug)]
struct Era {
    first: usize,
    time: u64,
}

/// Different values by number.
#[derive(Clone, Debug)]
struct Numbered<T> {
    list: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { list: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    fn number(&mut self, value: T) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.list.push(value);
            u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

impl Blocks {
    /// Returns the number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Returns the block with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Block> {
        let era = self.eras.partition_point(|era| era.first <= index);
        (index < self.len()).then(|| self.block(index, self.eras[era - 1].time))
    }

    /// Returns the blocks in the order of their allocation.
    pub fn iter(&self) -> impl Iterator<Item = Block> {
        let starts = self.eras.iter().map(|era| era.first);
        let ends = starts.clone().skip(1).chain(iter::once(self.len()));
        let eras = iter::zip(starts, ends).zip(&self.eras);
        eras.flat_map(|((start, end), era)| (start..end).map(|at| self.block(at, era.time)))
    }

    fn block(&self, index: usize, era: u64) -> Block {
        let Size { requested, usable, weight } = self.all_sizes.list[self.sizes[index] as usize];
        let allocated_at = era + u64::from(self.births[index]);
        let end = match self.lifetimes[index] {
            LIVES => None,
            LISTED => self.listed.get(&index).copied(),
            lifetime => Some(allocated_at + u64::from(lifetime)),
        };
        let freed = end.map(|time| {
            let Ender { thread, site } = self.all_enders.list[self.enders[index] as usize];
            Freed { time, thread, site }
        });
        let weight = f64::from_bits(weight);
        Block { site: self.sites[index], requested, usable, weight, allocated_at, freed }
    }

    /// Adds a block.
    pub fn push(&mut self, block: Block) {
        let Block { site, requested, usable, weight, allocated_at, freed } = block;
        let index = self.len();
        let birth = |era: &Era| u32::try_from(allocated_at.checked_sub(era.time)?).ok();
        let birth = self.eras.last().and_then(birth).unwrap_or_else(|| {
            self.eras.push(Era { first: index, time: allocated_at });
            0
        });
        let size = Size { requested, usable, weight: weight.to_bits() };
        self.sites.push(site);
        self.sizes.push(self.all_sizes.number(size));
        self.births.push(birth);
        self.lifetimes.push(LIVES);
        self.enders.push(0);
        if let Some(freed) = freed {
            self.set_freed(index, freed);
        }
    }

    /// Sets the end of a block.
    pub(super) fn set_freed(&mut self, index: usize, freed: Freed) {
        let Some(block) = self.get(index) else { return };
        let Freed { time, thread, site } = freed;
        let lifetime = time.checked_sub(block.allocated_at);
        let lifetime = lifetime.and_then(|time| u32::try_from(time).ok());
        self.lifetimes[index] = lifetime.filter(|time| *time < LISTED).unwrap_or_else(|| {
            self.listed.insert(index, time);
            LISTED
        });
        self.enders[index] = self.all_enders.number(Ender { thread, site });
    }
}

impl FromIterator<Block> for Blocks {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Self {
        let mut all = Self::default();
        blocks.into_iter().for_each(|block| all.push(block));
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block() -> impl Strategy<Value = Block> {
        // Times of hours, and damaged ones.
        let time = || prop_oneof![0..20_000_000_000_u64, Just(u64::MAX), 0..100_u64];
        let size = (0..5_u64, 0..3_u64, prop_oneof![Just(1.0), Just(2.5)]);
        let freed = prop::option::of((time(), 0..3_u32, 0..3_u32));
        (0..4_u32, size, time(), freed).prop_map(|(site, size, allocated_at, freed)| {
            let (requested, slop, weight) = size;
            let freed = freed.map(|(time, thread, site)| Freed { time, thread, site });
            let usable = requested + slop;
            Block { site, requested, usable, weight, allocated_at, freed }
        })
    }

    proptest! {
        #[test]
        fn blocks_come_out_as_they_went_in(blocks in prop::collection::vec(block(), 0..50)) {
            let columns: Blocks = blocks.iter().copied().collect();
            prop_assert_eq!(columns.len(), blocks.len());
            prop_assert_eq!(columns.is_empty(), blocks.is_empty());
            prop_assert_eq!(columns.iter().collect::<Vec<_>>(), blocks.clone());
            for (index, block) in blocks.iter().enumerate() {
                prop_assert_eq!(columns.get(index), Some(*block));
            }
            prop_assert_eq!(columns.get(blocks.len()), None);
        }
    }
}
