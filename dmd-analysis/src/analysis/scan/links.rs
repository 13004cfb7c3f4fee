//! Links of a scan dump: every word that points into a block is a link from one block to another.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::clamp::ClampError;
use crate::read::{Contents, Dump, InOrder, Mode};

/// The number of blocks per entry of the coarse index.
const INDEX_STEP: usize = 32;

/// A block with more words than this is read from its file in pieces: 1 MiB.
pub(crate) const LARGE: usize = if cfg!(test) { 2 } else { 128 << 10 };

/// The number of low bits that the addresses of a region differ in: 256 KiB. A search in the whole
/// index of a large heap waits for memory at each step.
const REGION_BITS: u32 = 18;

/// The addresses of one block.
#[derive(Debug, Clone, Copy)]
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
pub(crate) struct BlockRanges<'d> {
    dump: &'d Dump,
    /// The blocks in the order of their addresses; `None` if the dump has them in this order.
    order: Option<Vec<u32>>,
    /// A coarse index: the start of every [`INDEX_STEP`]th block.
    index: Vec<u64>,
    /// By region of addresses: the entries of the index that begin in it.
    regions: FxHashMap<u64, Range<u32>>,
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
pub(crate) struct Links<'d> {
    ranges: BlockRanges<'d>,
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

impl<'d> Links<'d> {
    /// Finds the links of a scan dump, clamped or not.
    pub(crate) fn new(dump: &'d Dump) -> Result<Self, ClampError> {
        let ranges = BlockRanges::new(dump)?;
        let mut links = Vec::new();
        ranges.each_link(|link| links.push(link));
        ranges.check_words()?;
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

impl<'d> BlockRanges<'d> {
    /// Sorts the blocks of a scan dump, clamped or not.
    pub(crate) fn new(dump: &'d Dump) -> Result<Self, ClampError> {
        if dump.invocation.mode != Mode::Scan {
            return Err(ClampError::NotScan);
        }
        if let Some(block) = dump.blocks.iter().position(|block| block.addr.is_none()) {
            return Err(ClampError::NoAddress { block });
        }
        let is_sorted = dump.blocks.iter().is_sorted_by_key(|block| (block.addr, block.usable()));
        let order = (!is_sorted).then(|| {
            let mut order: Vec<u32> = (0..).take(dump.blocks.len()).collect();
            order.sort_by_key(|&block| {
                let block = dump.blocks.at(block as usize);
                (block.addr, block.usable())
            });
            order
        });
        let (index, regions) = (Vec::new(), FxHashMap::default());
        let mut ranges = Self { dump, order, index, regions, word: word_size(dump) };
        let starts = (0..dump.blocks.len()).step_by(INDEX_STEP);
        ranges.index = starts.map(|at| ranges.start(at)).collect();
        ranges.regions = regions_of(&ranges.index);
        Ok(ranges)
    }

    /// Returns the dump with the blocks.
    pub(crate) fn dump(&self) -> &'d Dump {
        self.dump
    }

    /// Returns an error if words of blocks could not be read from the dump's file, so that links
    /// are missing.
    pub(crate) fn check_words(&self) -> Result<(), ClampError> {
        let lost = self.dump.lost_words();
        lost.map_or(Ok(()), |reason| Err(ClampError::Words(reason.to_owned())))
    }

    /// Returns the block that contains an address.
    pub(crate) fn block_at(&self, address: u64) -> Option<BlockAddress> {
        let range = self.before(address)?;
        let offset = address - range.start;
        (address < range.end).then_some(BlockAddress { block: range.block, offset })
    }

    /// Returns the addresses of the block at a place in the order of addresses.
    fn range(&self, at: usize) -> BlockRange {
        let at = self.block(at);
        let block = self.dump.blocks.numbers(at);
        let start = block.addr.map_or(0, u64::from);
        let end = start.saturating_add(block.usable().max(1));
        BlockRange { start, end, block: u32::try_from(at).unwrap_or(u32::MAX) }
    }

    /// Returns the start of the block at a place in the order of addresses.
    fn start(&self, at: usize) -> u64 {
        self.dump.blocks.address(self.block(at)).map_or(0, u64::from)
    }

    /// Returns the block at a place in the order of addresses.
    fn block(&self, at: usize) -> usize {
        self.order.as_ref().map_or(at, |order| order[at] as usize)
    }

    /// Returns the last block that begins at or before an address.
    fn before(&self, address: u64) -> Option<BlockRange> {
        let region = self.regions.get(&(address >> REGION_BITS)).cloned();
        let part = region.map_or(0..self.index.len(), |of| of.start as usize..of.end as usize);
        let before = part.start;
        let passed = before + self.index[part].partition_point(|start| *start <= address);
        let mut first = passed.checked_sub(1)? * INDEX_STEP;
        let mut end = self.dump.blocks.len().min(first + INDEX_STEP);
        while end - first > 1 {
            let middle = first.midpoint(end);
            if self.start(middle) <= address {
                first = middle;
            } else {
                end = middle;
            }
        }
        Some(self.range(first))
    }

    /// Visits every link of the dump, in the order of the blocks that they come from.
    pub(crate) fn each_link(&self, mut visit: impl FnMut(Link)) {
        let mut words = self.dump.words_in_order();
        for contents in self.dump.contents() {
            self.each_link_of_contents(&mut words, contents, &mut visit);
        }
    }

    /// Visits every link that comes from one block.
    pub(crate) fn each_link_of(&self, block: u32, mut visit: impl FnMut(Link)) {
        let mut links = self.links_from(block);
        self.each_piece_of(block, |first, piece| links.visit(first, piece, &mut visit));
    }

    /// Visits every link that comes from one block, which has these words.
    pub(crate) fn each_link_in(&self, block: u32, words: &[u64], mut visit: impl FnMut(Link)) {
        self.links_from(block).visit(0, words, &mut visit);
    }

    /// Visits the words of a block in pieces: each with the number of its first word.
    pub(crate) fn each_piece_of(&self, block: u32, mut visit: impl FnMut(u64, &[u64])) {
        match self.dump.contents_of(block as usize) {
            None => {}
            Some(contents) if contents.count() > LARGE => {
                let mut words = self.dump.words_in_order();
                words.visit(contents.place(), contents.count(), visit);
            }
            Some(contents) => visit(0, self.dump.words(&contents, &mut Vec::new())),
        }
    }

    /// Returns the first words of a block, none if the dump does not contain them. Those of a file
    /// are read into `buffer`.
    pub(crate) fn first_words<'w>(
        &'w self,
        block: u32,
        count: usize,
        buffer: &'w mut Vec<u64>,
    ) -> &'w [u64] {
        let contents = self.dump.contents_of(block as usize);
        contents.map_or(&[], |contents| self.dump.words_from(&contents, 0, count, buffer))
    }

    fn each_link_of_contents(
        &self,
        words: &mut InOrder<'_>,
        contents: Contents,
        visit: &mut impl FnMut(Link),
    ) {
        let from = u32::try_from(contents.block()).unwrap_or(u32::MAX);
        let mut links = self.links_from(from);
        words.visit(contents.place(), contents.count(), |first, piece| {
            links.visit(first, piece, visit);
        });
    }

    fn links_from(&self, from: u32) -> LinksFrom<'_> {
        let last = self.dump.blocks.len().checked_sub(1).map(|last| self.range(last).end);
        let heap = self.index.first().copied().unwrap_or(0)..last.unwrap_or(0);
        LinksFrom { ranges: self, from, heap, near: BlockRange { start: 1, end: 0, block: 0 } }
    }
}

/// The search for the links that come from a block.
struct LinksFrom<'r> {
    ranges: &'r BlockRanges<'r>,
    from: u32,
    /// The addresses from the first block to the end of the last one.
    heap: Range<u64>,
    /// The last block that was found: neighbouring words often point at the same one.
    near: BlockRange,
}

impl LinksFrom<'_> {
    /// Visits the links among words of the block, from the one with this number on.
    fn visit(&mut self, first: u64, words: &[u64], visit: &mut impl FnMut(Link)) {
        for (&word, number) in words.iter().zip(first..) {
            if !self.heap.contains(&word) {
                continue;
            }
            if !self.near.contains(word) {
                self.near = self.ranges.before(word).unwrap_or(self.near);
            }
            if self.near.contains(word) {
                let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                let at = short(number * self.ranges.word);
                let into = short(word - self.near.start);
                visit(Link { to: self.near.block, from: self.from, at, into });
            }
        }
    }
}

/// Returns the entries of an index that begin in each region of addresses.
fn regions_of(index: &[u64]) -> FxHashMap<u64, Range<u32>> {
    let mut regions: FxHashMap<u64, Range<u32>> = FxHashMap::default();
    for (start, at) in index.iter().zip(0..) {
        regions.entry(start >> REGION_BITS).or_insert(at..at).end = at + 1;
    }
    regions
}

/// Returns the size of a word in bytes: 4 in the dump of a 32-bit program, whose blocks have too
/// many words for 8.
fn word_size(dump: &Dump) -> u64 {
    let too_many = |contents: Contents| {
        contents.count() as u64 * 8 > dump.blocks.at(contents.block()).usable()
    };
    if dump.contents().any(too_many) { 4 } else { 8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;
    use std::fmt::Write as _;

    #[test]
    fn every_address_is_in_the_block_that_contains_it() {
        // Small blocks side by side, large ones, and gaps of several regions.
        let mut blocks = Vec::new();
        let mut address: u64 = 0x1000;
        for number in 0..5_000_u64 {
            let size = if number % 701 == 0 { 3 << REGION_BITS } else { 16 + number % 7 * 48 };
            blocks.push(address..address + size);
            address += size + if number % 900 == 0 { 5 << REGION_BITS } else { number % 3 * 16 };
        }
        let mut list = String::new();
        for block in &blocks {
            let (start, size) = (block.start, block.end - block.start);
            let comma = if list.is_empty() { "" } else { "," };
            let _ = write!(list, r#"{comma}{{"req":{size},"addr":"{start:x}"}}"#);
        }
        let text = format!(
            r#"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"scan"}},"blockList":[{list}],
            "traceTable":{{}},"frameTable":{{}}}}"#
        );
        let dump = read_slice(text.as_bytes()).expect("it is a dump");
        let ranges = BlockRanges::new(&dump).expect("it is a scan");
        assert!(ranges.regions.len() > 10 && ranges.index.len() > 100);
        let last = blocks[blocks.len() - 1].end;
        let ends = blocks.iter().flat_map(|block| [block.start, block.end]);
        let near = ends.flat_map(|end| [end - 1, end, end + (1 << REGION_BITS)]);
        for address in near.chain([0, 0xfff, 0x1000, last, u64::MAX]) {
            let block = blocks.partition_point(|block| block.end <= address);
            let expected = blocks.get(block).filter(|block| block.contains(&address));
            let found = ranges.block_at(address).map(|found| (found.block as usize, found.offset));
            assert_eq!(found, expected.map(|at| (block, address - at.start)), "{address:x}");
        }
    }
}
