//! Which blocks of a scan dump point at which: every word that leads into a block is a link.

use super::clamp::ClampError;
use crate::read::{Contents, Dump, Mode};

/// A signpost stands at every so many blocks.
const BETWEEN_SIGNPOSTS: usize = 32;

/// Where the blocks of a scan dump are.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Blocks by address: the first byte, one past the last, the place in the dump.
    ranges: Vec<(u64, u64, u32)>,
    /// The first byte of every so many blocks: few enough to stay in the cache.
    signposts: Vec<u64>,
    /// The bytes of a word.
    word: u64,
}

/// The links of a dump, by the block that they lead to.
#[derive(Debug)]
pub(crate) struct Links {
    ranges: Ranges,
    /// Sorted by target.
    links: Vec<Link>,
}

/// A word that leads into a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// The block that it leads into.
    pub(crate) to: u32,
    /// The block that has the word.
    pub(crate) from: u32,
    /// Where the word is in that block, in bytes.
    pub(crate) at: u32,
    /// How far into the other block it leads, in bytes.
    pub(crate) into: u32,
}

impl Links {
    /// The links of a scan dump, clamped or not.
    pub(crate) fn new(dump: &Dump) -> Result<Self, ClampError> {
        let ranges = Ranges::new(dump)?;
        let mut links = Vec::new();
        ranges.each_link(dump, |link| links.push(link));
        links.sort_unstable();
        Ok(Self { ranges, links })
    }

    /// The block that has this address, as its place in the dump, and how far into it the address is.
    pub(crate) fn block_at(&self, address: u64) -> Option<(u32, u64)> {
        self.ranges.block_at(address)
    }

    /// The links that lead into a block, by the block that they come from.
    pub(crate) fn to(&self, block: u32) -> &[Link] {
        let first = self.links.partition_point(|link| link.to < block);
        let rest = &self.links[first..];
        &rest[..rest.partition_point(|link| link.to == block)]
    }
}

impl Ranges {
    /// The blocks of a scan dump, clamped or not.
    pub(crate) fn new(dump: &Dump) -> Result<Self, ClampError> {
        if dump.invocation.mode != Mode::Scan {
            return Err(ClampError::NotScan);
        }
        let mut ranges = Vec::with_capacity(dump.blocks.len());
        for (index, block) in dump.blocks.iter().enumerate() {
            let start = block.addr.ok_or(ClampError::NoAddress { block: index })?.get();
            let end = start.saturating_add(block.usable().max(1));
            ranges.push((start, end, u32::try_from(index).unwrap_or(u32::MAX)));
        }
        ranges.sort_unstable();
        let signposts = ranges.iter().step_by(BETWEEN_SIGNPOSTS).map(|range| range.0).collect();
        Ok(Self { ranges, signposts, word: word_size(dump) })
    }

    /// The block that has this address, as its place in the dump, and how far into it the address is.
    pub(crate) fn block_at(&self, address: u64) -> Option<(u32, u64)> {
        let (start, end, index) = self.before(address)?;
        (address < end).then_some((index, address - start))
    }

    /// The last block that begins at or before an address.
    fn before(&self, address: u64) -> Option<(u64, u64, u32)> {
        let passed = self.signposts.partition_point(|start| *start <= address);
        let first = passed.checked_sub(1)? * BETWEEN_SIGNPOSTS;
        let last = self.ranges.len().min(first + BETWEEN_SIGNPOSTS);
        let near = &self.ranges[first..last];
        near.get(near.partition_point(|range| range.0 <= address).checked_sub(1)?).copied()
    }

    /// Every link of the dump, by the block that it comes from.
    pub(crate) fn each_link(&self, dump: &Dump, mut visit: impl FnMut(Link)) {
        for contents in &dump.contents {
            self.each_link_in(dump, contents, &mut visit);
        }
    }

    /// Every link of one block.
    pub(crate) fn each_link_of(&self, dump: &Dump, block: u32, mut visit: impl FnMut(Link)) {
        // A block's contents are read where it is: in the order of the blocks.
        let first = dump.contents.partition_point(|contents| contents.block < block as usize);
        let own = dump.contents[first..].iter();
        for contents in own.take_while(|contents| contents.block == block as usize) {
            self.each_link_in(dump, contents, &mut visit);
        }
    }

    /// The words of a block: none if the dump does not have them.
    pub(crate) fn words_of<'d>(&self, dump: &'d Dump, block: u32) -> &'d [u64] {
        let first = dump.contents.partition_point(|contents| contents.block < block as usize);
        let own = dump.contents.get(first).filter(|contents| contents.block == block as usize);
        own.map_or(&[], |contents| dump.words(contents))
    }

    fn each_link_in(&self, dump: &Dump, contents: &Contents, visit: &mut impl FnMut(Link)) {
        let (Some(first), Some(last)) = (self.ranges.first(), self.ranges.last()) else { return };
        let heap = first.0..last.1;
        let from = u32::try_from(contents.block).unwrap_or(u32::MAX);
        // Neighbouring words often lead to neighbouring blocks, and one range is enough to see that.
        let mut near = (1, 0, 0);
        for (&word, number) in dump.words(contents).iter().zip(0_u64..) {
            if !heap.contains(&word) {
                continue;
            }
            if !(near.0..near.1).contains(&word) {
                near = self.before(word).unwrap_or(near);
            }
            if (near.0..near.1).contains(&word) {
                let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                let (at, into) = (short(number * self.word), short(word - near.0));
                visit(Link { to: near.2, from, at, into });
            }
        }
    }
}

/// The bytes of a word: 4 in a dump of a program of 32 bits, whose blocks have more words than fit otherwise.
fn word_size(dump: &Dump) -> u64 {
    let too_many = |contents: &Contents| {
        dump.words(contents).len() as u64 * 8 > dump.blocks[contents.block].usable()
    };
    if dump.contents.iter().any(too_many) { 4 } else { 8 }
}
