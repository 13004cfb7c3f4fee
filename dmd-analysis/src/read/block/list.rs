//! The blocks of a dump in 16 bytes each, since a scan of a big heap has many millions of them.

use std::num::NonZeroU64;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Block, BlockKind};

/// The blocks of a dump, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct BlockList {
    entries: Vec<Entry>,
    kinds: Vec<BlockKind>,
    /// The number of equal blocks of each entry. Entries behind its end are one block each.
    counts: Vec<u64>,
    /// The numbers of blocks that do not fit into an entry, by index.
    large: FxHashMap<usize, Numbers>,
}

/// A block, packed. If the requested bytes are [`LARGE`], its numbers are in [`BlockList::large`].
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The address, which is 0 if it is not known; above it the slop bytes.
    address_and_slop: u64,
    /// The requested bytes.
    req: u32,
    /// The index of its kind.
    kind: u32,
}

const LARGE: u32 = u32::MAX;
const ADDRESS_BITS: u32 = 48;

/// The numbers of a block: see [`Block`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) req: u64,
    pub(crate) slop: u64,
    pub(crate) addr: Option<NonZeroU64>,
}

impl Numbers {
    /// Returns the bytes that the program can use: requested bytes and slop.
    #[inline]
    pub(crate) fn usable(&self) -> u64 {
        self.req.saturating_add(self.slop)
    }
}

impl Entry {
    /// Packs a block. Returns `None` if its numbers do not fit.
    fn new(Numbers { req, slop, addr }: Numbers, kind: u32) -> Option<Self> {
        let address = addr.map_or(0, NonZeroU64::get);
        let req = u32::try_from(req).ok().filter(|req| *req != LARGE)?;
        let fits = address >> ADDRESS_BITS == 0 && slop >> (u64::BITS - ADDRESS_BITS) == 0;
        fits.then_some(Entry { address_and_slop: address | slop << ADDRESS_BITS, req, kind })
    }

    fn numbers(self) -> Numbers {
        Numbers {
            req: self.req.into(),
            slop: self.address_and_slop >> ADDRESS_BITS,
            addr: NonZeroU64::new(self.address_and_slop & ((1 << ADDRESS_BITS) - 1)),
        }
    }
}

impl BlockList {
    /// Returns the number of entries, each of which is one or more equal blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the block with this index; `None` if there is none.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Block<'_>> {
        let entry = self.entries.get(index)?;
        let Numbers { req, slop, addr } = self.numbers_of(index, *entry);
        let num = self.counts.get(index).copied().unwrap_or(1);
        Some(Block { req, slop, num, addr, kind: &self.kinds[entry.kind as usize] })
    }

    /// Returns the block with this index.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn at(&self, index: usize) -> Block<'_> {
        let block = self.get(index);
        block.unwrap_or_else(|| {
            panic!("the dump has {} blocks, and none with the index {index}", self.len())
        })
    }

    /// Returns the numbers of the block with this index.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub(crate) fn numbers(&self, index: usize) -> Numbers {
        self.numbers_of(index, self.entries[index])
    }

    #[inline]
    fn numbers_of(&self, index: usize, entry: Entry) -> Numbers {
        let large = if entry.req == LARGE { self.large.get(&index).copied() } else { None };
        large.unwrap_or_else(|| entry.numbers())
    }

    /// Returns the blocks in their order.
    #[must_use]
    pub fn iter(&self) -> Blocks<'_> {
        Blocks { list: self, rest: 0..self.len() }
    }

    /// Adds a kind of blocks, unless it is the last one. Returns its index.
    pub(crate) fn add_kind(&mut self, kind: BlockKind) -> u32 {
        if self.kinds.last() != Some(&kind) {
            self.kinds.push(kind);
        }
        u32::try_from(self.kinds.len() - 1).unwrap_or(u32::MAX)
    }

    /// Adds so many equal blocks of a kind, as one entry.
    pub(crate) fn push(&mut self, numbers: Numbers, num: u64, kind: u32) {
        let index = self.entries.len();
        let entry = Entry::new(numbers, kind).unwrap_or_else(|| {
            self.large.insert(index, numbers);
            Entry { address_and_slop: 0, req: LARGE, kind }
        });
        self.entries.push(entry);
        if num != 1 {
            self.counts.resize(index, 1);
            self.counts.push(num);
        }
    }

    /// Adds so many blocks to those of an entry.
    pub(crate) fn add(&mut self, index: usize, num: u64) {
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 1);
        }
        self.counts[index] = self.counts[index].saturating_add(num);
    }

    /// Returns a list of the blocks for which `keeps` returns `true`.
    pub(crate) fn filtered(&self, mut keeps: impl FnMut(usize, &Block<'_>) -> bool) -> Self {
        let mut kept = self.without_blocks();
        for (index, block) in self.iter().enumerate() {
            if keeps(index, &block) {
                let Block { req, slop, num, addr, kind: _ } = block;
                kept.push(Numbers { req, slop, addr }, num, self.entries[index].kind);
            }
        }
        kept
    }

    /// Returns a list with the same kinds and no block.
    pub(crate) fn without_blocks(&self) -> Self {
        BlockList { kinds: self.kinds.clone(), ..BlockList::default() }
    }

    /// Returns the index of a block's kind, and the number of equal blocks; `None` if there is no
    /// such block.
    pub(crate) fn kind_and_num(&self, index: usize) -> Option<(u32, u64)> {
        let kind = self.entries.get(index)?.kind;
        Some((kind, self.counts.get(index).copied().unwrap_or(1)))
    }
}

/// An iterator over the blocks of a dump.
#[derive(Debug, Clone)]
pub struct Blocks<'l> {
    list: &'l BlockList,
    rest: Range<usize>,
}

impl<'l> Iterator for Blocks<'l> {
    type Item = Block<'l>;

    fn next(&mut self) -> Option<Block<'l>> {
        self.list.get(self.rest.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl ExactSizeIterator for Blocks<'_> {}

impl<'l> IntoIterator for &'l BlockList {
    type Item = Block<'l>;
    type IntoIter = Blocks<'l>;

    fn into_iter(self) -> Blocks<'l> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_all_sizes_are_as_they_were_pushed() {
        const _: () = assert!(size_of::<Entry>() == 16);
        let addresses = [0, 0x10, (1 << 48) - 16, 1 << 48, u64::MAX];
        let sizes = [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX];
        let slops = [0, (1 << 16) - 1, 1 << 16, u64::MAX];
        let kinds = [None, Some(3), Some(3), None]
            .map(|thread| BlockKind { thread, ..BlockKind::default() });
        let mut list = BlockList::default();
        let mut pushed = Vec::new();
        for addr in addresses.map(NonZeroU64::new) {
            for req in sizes {
                for (slop, kind) in slops.into_iter().zip(&kinds) {
                    let num = if slop == 1 << 16 { 7 } else { 1 };
                    let number = list.add_kind(kind.clone());
                    list.push(Numbers { req, slop, addr }, num, number);
                    pushed.push((req, slop, num, addr, kind.thread));
                }
            }
        }
        let all = |list: &BlockList| -> Vec<_> {
            list.iter().map(|of| (of.req, of.slop, of.num, of.addr, of.kind.thread)).collect()
        };
        assert_eq!(all(&list), pushed);
        assert_eq!((list.len(), list.iter().len()), (pushed.len(), pushed.len()));
        let odd = list.filtered(|index, _| index % 2 == 1);
        let expected: Vec<_> = pushed.iter().copied().skip(1).step_by(2).collect();
        assert_eq!(all(&odd), expected);
        assert!(list.get(pushed.len()).is_none() && list.without_blocks().is_empty());
    }
}
