//! Links of a scan dump: every word that points into a block is a link from one block to another.

use super::clamp::ClampError;
use crate::read::{Contents, Dump, Mode};

/// The number of blocks per entry of the coarse index.
const INDEX_STEP: usize = 32;

/// The addresses of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BlockRange {
    start: u64,
    end: u64,
    /// The index of the block in the dump.
    block: u32,
}

impl BlockRange {
    fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The addresses of all blocks of a scan dump, for lookups by address.
#[derive(Debug)]
pub(crate) struct BlockRanges {
    /// Sorted by address.
    ranges: Vec<BlockRange>,
    /// A coarse index: the start of every [`INDEX_STEP`]th block, small enough for the cache.
    index: Vec<u64>,
    /// The size of a word in bytes.
    word: u64,
}

/// An address in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockAddress {
    /// The index of the block in the dump.
    pub(crate) block: u32,
    /// The offset of the address from the block's start, in bytes.
    pub(crate) offset: u64,
}

/// The links of a dump, by the block that they point at.
#[derive(Debug)]
pub(crate) struct Links {
    ranges: BlockRanges,
    /// Sorted by target.
    links: Vec<Link>,
}

/// A word that points into a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// The index of the block that it points at.
    pub(crate) to: u32,
    /// The index of the block that contains the word.
    pub(crate) from: u32,
    /// The offset of the word in that block, in bytes.
    pub(crate) at: u32,
    /// The offset in the other block that it points at, in bytes.
    pub(crate) into: u32,
}

impl Links {
    /// Finds the links of a scan dump, clamped or not.
    pub(crate) fn new(dump: &Dump) -> Result<Self, ClampError> {
        let ranges = BlockRanges::new(dump)?;
        let mut links = Vec::new();
        ranges.each_link(dump, |link| links.push(link));
        links.sort_unstable();
        Ok(Self { ranges, links })
    }

    /// Returns the block that contains an address.
    pub(crate) fn block_at(&self, address: u64) -> Option<BlockAddress> {
        self.ranges.block_at(address)
    }

    /// Returns the links that point at a block, sorted by the block that they come from.
    pub(crate) fn to(&self, block: u32) -> &[Link] {
        let first = self.links.partition_point(|link| link.to < block);
        let rest = &self.links[first..];
        &rest[..rest.partition_point(|link| link.to == block)]
    }
}

impl BlockRanges {
    /// Sorts the blocks of a scan dump, clamped or not.
    pub(crate) fn new(dump: &Dump) -> Result<Self, ClampError> {
        if dump.invocation.mode != Mode::Scan {
            return Err(ClampError::NotScan);
        }
        let mut ranges = Vec::with_capacity(dump.blocks.len());
        for (index, block) in dump.blocks.iter().enumerate() {
            let start = block.addr.ok_or(ClampError::NoAddress { block: index })?.get();
            let end = start.saturating_add(block.usable().max(1));
            let block = u32::try_from(index).unwrap_or(u32::MAX);
            ranges.push(BlockRange { start, end, block });
        }
        ranges.sort_unstable();
        let index = ranges.iter().step_by(INDEX_STEP).map(|range| range.start).collect();
        Ok(Self { ranges, index, word: word_size(dump) })
    }

    /// Returns the block that contains an address.
    pub(crate) fn block_at(&self, address: u64) -> Option<BlockAddress> {
        let range = self.before(address)?;
        let offset = address - range.start;
        (address < range.end).then_some(BlockAddress { block: range.block, offset })
    }

    /// Returns the last block that begins at or before an address.
    fn before(&self, address: u64) -> Option<BlockRange> {
        let passed = self.index.partition_point(|start| *start <= address);
        let first = passed.checked_sub(1)? * INDEX_STEP;
        let last = self.ranges.len().min(first + INDEX_STEP);
        let near = &self.ranges[first..last];
        near.get(near.partition_point(|range| range.start <= address).checked_sub(1)?).copied()
    }

    /// Visits every link of the dump, in the order of the blocks that they come from.
    pub(crate) fn each_link(&self, dump: &Dump, mut visit: impl FnMut(Link)) {
        for contents in &dump.contents {
            self.each_link_in(dump, contents, &mut visit);
        }
    }

    /// Visits every link that comes from one block.
    pub(crate) fn each_link_of(&self, dump: &Dump, block: u32, mut visit: impl FnMut(Link)) {
        // Contents are in the order of the blocks.
        let first = dump.contents.partition_point(|contents| contents.block() < block as usize);
        let own = dump.contents[first..].iter();
        for contents in own.take_while(|contents| contents.block() == block as usize) {
            self.each_link_in(dump, contents, &mut visit);
        }
    }

    /// Returns the words of a block, none if the dump does not contain them.
    pub(crate) fn words_of<'d>(&self, dump: &'d Dump, block: u32) -> &'d [u64] {
        let first = dump.contents.partition_point(|contents| contents.block() < block as usize);
        let own = dump.contents.get(first).filter(|contents| contents.block() == block as usize);
        own.map_or(&[], |contents| dump.words(contents))
    }

    fn each_link_in(&self, dump: &Dump, contents: &Contents, visit: &mut impl FnMut(Link)) {
        let (Some(first), Some(last)) = (self.ranges.first(), self.ranges.last()) else { return };
        let heap = first.start..last.end;
        let from = u32::try_from(contents.block()).unwrap_or(u32::MAX);
        // Neighbouring words often point at the same block, so the last range is tried first.
        let mut near = BlockRange { start: 1, end: 0, block: 0 };
        for (&word, number) in dump.words(contents).iter().zip(0_u64..) {
            if !heap.contains(&word) {
                continue;
            }
            if !near.contains(word) {
                near = self.before(word).unwrap_or(near);
            }
            if near.contains(word) {
                let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                let (at, into) = (short(number * self.word), short(word - near.start));
                visit(Link { to: near.block, from, at, into });
            }
        }
    }
}

/// Returns the size of a word in bytes: 4 in the dump of a 32-bit program, whose blocks have too
/// many words for 8.
fn word_size(dump: &Dump) -> u64 {
    let too_many = |contents: &Contents| {
        dump.words(contents).len() as u64 * 8 > dump.blocks[contents.block()].usable()
    };
    if dump.contents.iter().any(too_many) { 4 } else { 8 }
}
