//! The blocks of a dump in 8 bytes each, since a scan of a big heap has many millions of them.
//!
//! A block is the index of its shape, which it has in common with others, and the distance of its
//! address from that of a block nearby.

mod addresses;

use std::num::NonZeroU64;
use std::ops::Range;

use rustc_hash::FxHashMap;

use self::addresses::Addresses;
use super::{Block, BlockKind};

/// The blocks of a dump, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct BlockList {
    /// The index of the shape of each entry.
    entries: Vec<u32>,
    addresses: Addresses,
    /// The number of equal blocks of each entry. Entries behind its end are one block each.
    counts: Vec<u64>,
    shapes: Vec<Shape>,
    /// The indices of shapes, at most [`MOST_KNOWN`].
    known: FxHashMap<Shape, u32>,
    kinds: Vec<BlockKind>,
}

/// The sizes and the kind of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    req: u64,
    slop: u64,
    /// The index of the kind.
    kind: u32,
}

/// The most shapes that are recognised: with more, all are forgotten, and the next block of each
/// shape adds it once more. So a dump whose blocks are all different takes little more memory.
const MOST_KNOWN: usize = 1 << 17;

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
        let Shape { req, slop, kind } = self.shape(index)?;
        let (num, addr) = (self.num(index), self.address(index));
        Some(Block { req, slop, num, addr, kind: &self.kinds[kind as usize] })
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
        let Shape { req, slop, kind: _ } = self.shapes[self.entries[index] as usize];
        Numbers { req, slop, addr: self.address(index) }
    }

    /// Returns the address of the block with this index, if it is known.
    #[inline]
    pub(crate) fn address(&self, index: usize) -> Option<NonZeroU64> {
        self.addresses.get(index)
    }

    /// Returns the index of a block's kind, and the number of equal blocks; `None` if there is no
    /// such block.
    pub(crate) fn kind_and_num(&self, index: usize) -> Option<(u32, u64)> {
        Some((self.shape(index)?.kind, self.num(index)))
    }

    #[inline]
    fn shape(&self, index: usize) -> Option<Shape> {
        Some(self.shapes[*self.entries.get(index)? as usize])
    }

    #[inline]
    fn num(&self, index: usize) -> u64 {
        self.counts.get(index).copied().unwrap_or(1)
    }

    /// Returns the blocks in their order.
    #[must_use]
    pub fn iter(&self) -> Blocks<'_> {
        Blocks { list: self, rest: 0..self.len() }
    }

    /// Returns the blocks, with alike ones (of the same sizes and kind) as one without an address.
    /// They come in the order of their first ones.
    pub(crate) fn added_up(&self) -> impl Iterator<Item = Block<'_>> {
        let mut nums = vec![0_u64; self.shapes.len()];
        for (index, shape) in self.entries.iter().enumerate() {
            let sum = &mut nums[*shape as usize];
            *sum = sum.saturating_add(self.num(index));
        }
        self.shapes.iter().zip(nums).map(|(&Shape { req, slop, kind }, num)| Block {
            req,
            slop,
            num,
            addr: None,
            kind: &self.kinds[kind as usize],
        })
    }

    /// Returns the index of a block's shape, which is the index of its entry in
    /// [`added_up`](Self::added_up).
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[inline]
    pub(crate) fn shape_of(&self, index: usize) -> usize {
        self.entries[index] as usize
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
        let shape = self.add_shape(numbers, kind);
        self.push_entry(shape, numbers.addr, num);
    }

    /// Adds so many blocks to the entry of alike ones: of the same sizes and the same kind. Their
    /// addresses are lost. A list has either such entries alone, or none of them.
    pub(crate) fn add_up(&mut self, numbers: Numbers, num: u64, kind: u32) {
        // Each entry has a shape of its own, so that their indices are equal.
        let shape = self.add_shape(numbers, kind);
        let index = shape as usize;
        if index == self.len() {
            return self.push_entry(shape, None, num);
        }
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 1);
        }
        self.counts[index] = self.counts[index].saturating_add(num);
    }

    /// Returns the index of a shape, which is added if it is not known.
    fn add_shape(&mut self, Numbers { req, slop, addr: _ }: Numbers, kind: u32) -> u32 {
        let shape = Shape { req, slop, kind };
        if let Some(known) = self.known.get(&shape) {
            return *known;
        }
        if self.known.len() == MOST_KNOWN {
            self.known.clear();
        }
        // A block takes several bytes of a dump, so there are fewer.
        let index = u32::try_from(self.shapes.len()).expect("a dump has less than 2^32 blocks");
        self.known.insert(shape, index);
        self.shapes.push(shape);
        index
    }

    fn push_entry(&mut self, shape: u32, addr: Option<NonZeroU64>, num: u64) {
        let index = self.entries.len();
        self.entries.push(shape);
        self.addresses.push(index, addr);
        if num != 1 {
            self.counts.resize(index, 1);
            self.counts.push(num);
        }
    }

    /// Returns a list of the blocks for which `keeps` returns `true`.
    pub(crate) fn filtered(&self, mut keeps: impl FnMut(usize, &Block<'_>) -> bool) -> Self {
        let mut kept = self.without_blocks();
        for (index, block) in self.iter().enumerate() {
            if keeps(index, &block) {
                let kind = self.shapes[self.entries[index] as usize].kind;
                let Block { req, slop, num, addr, kind: _ } = block;
                kept.push(Numbers { req, slop, addr }, num, kind);
            }
        }
        kept
    }

    /// Returns a list with the same kinds and no block.
    pub(crate) fn without_blocks(&self) -> Self {
        BlockList { kinds: self.kinds.clone(), ..BlockList::default() }
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
        let addresses = [0, 0x10, (1 << 48) - 16, 1 << 48, u64::MAX];
        let sizes = [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX];
        let slops = [0, (1 << 16) - 1, 1 << 16, u64::MAX];
        let kinds = [None, Some(3), Some(3), None]
            .map(|thread| BlockKind { thread, ..BlockKind::default() });
        let mut list = BlockList::default();
        let numbers = kinds.clone().map(|kind| list.add_kind(kind));
        let mut pushed = Vec::new();
        for addr in addresses.map(NonZeroU64::new) {
            for req in sizes {
                for (slop, (kind, number)) in slops.into_iter().zip(kinds.iter().zip(&numbers)) {
                    let num = if slop == 1 << 16 { 7 } else { 1 };
                    list.push(Numbers { req, slop, addr }, num, *number);
                    pushed.push((req, slop, num, addr, kind.thread));
                }
            }
        }
        let all = |list: &BlockList| -> Vec<_> {
            list.iter().map(|of| (of.req, of.slop, of.num, of.addr, of.kind.thread)).collect()
        };
        assert_eq!(all(&list), pushed);
        assert_eq!((list.len(), list.iter().len()), (pushed.len(), pushed.len()));
        let mut sums = std::collections::BTreeMap::new();
        for (req, slop, num, _, thread) in &pushed {
            *sums.entry((*req, *slop, *thread)).or_default() += num;
        }
        let added: Vec<_> = list.added_up().collect();
        assert_eq!(added.len(), sums.len());
        for (index, of) in list.iter().enumerate() {
            let alike = added[list.shape_of(index)];
            assert_eq!((alike.req, alike.slop, alike.kind), (of.req, of.slop, of.kind));
        }
        for of in added {
            assert_eq!((of.num, of.addr), (sums[&(of.req, of.slop, of.kind.thread)], None));
        }
        let odd = list.filtered(|index, _| index % 2 == 1);
        let expected: Vec<_> = pushed.iter().copied().skip(1).step_by(2).collect();
        assert_eq!(all(&odd), expected);
        assert!(list.get(pushed.len()).is_none() && list.without_blocks().is_empty());
    }

    #[test]
    fn alike_blocks_are_one_entry_until_their_shape_is_forgotten() {
        let mut list = BlockList::default();
        let kinds = [1, 2].map(|thread| {
            list.add_kind(BlockKind { thread: Some(thread), ..BlockKind::default() })
        });
        let mut add = |req: u64, slop: u64, num: u64, kind: usize| {
            let addr = NonZeroU64::new(1 + req);
            list.add_up(Numbers { req, slop, addr }, num, kinds[kind]);
        };
        for _ in 0..3 {
            add(40, 0, 1, 0);
            add(40, 8, 1, 0);
            add(40, 0, 2, 1);
        }
        // These take all places but three, and the next one makes room.
        let others = 100..100 + MOST_KNOWN as u64 - 3;
        others.clone().for_each(|req| add(req, 0, 1, 0));
        add(40, 8, 5, 0);
        add(7, 7, 1, 0);
        add(40, 8, 1, 0);
        let all: Vec<_> = list.iter().map(|of| (of.req, of.slop, of.num, of.kind.thread)).collect();
        assert_eq!(all[..3], [(40, 0, 3, Some(1)), (40, 8, 8, Some(1)), (40, 0, 6, Some(2))]);
        assert_eq!(all[3..MOST_KNOWN].len(), others.count());
        assert!(all[3..MOST_KNOWN].iter().all(|of| of.2 == 1));
        assert_eq!(all[MOST_KNOWN..], [(7, 7, 1, Some(1)), (40, 8, 1, Some(1))]);
        assert!(list.iter().all(|block| block.addr.is_none()));
    }
}
