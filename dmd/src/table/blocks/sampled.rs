//! The compact table of sampled blocks: its memory is proportional to the sample, where the tree
//! needs a page of words for each block that lies alone.
//!
//! Read `entry` (a block in two words, and how threads share them), then `levels` (the buckets of
//! entries) and `filter`, which answers most look-ups. `ascending` visits the starts in order.
//!
//! A bucket serves the addresses of some spans of the tree. So a block is found from any address
//! inside: its own span's bucket has its start, and the bucket of each further span an overlap, as
//! the span of the tree has.

mod entry;
mod levels;
mod filter;
mod ascending;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

use std::ops::Range;

use self::entry::{Entry, Name};
use self::filter::Filter;
use self::levels::Levels;
use super::leaf::{SPAN_BITS, further_spans};
use super::{Blocks, Granule, HUGE_SPANS, LiveBlock};
use crate::mem::sync::const_fn;
use crate::mem::sys;
use crate::table::packed_block::{Block, PackedBlock, Sizes};

/// The compact table of sampled blocks.
pub(super) struct SampledBlocks {
    filter: Filter,
    levels: Levels,
}

impl SampledBlocks {
    const_fn! {
        pub(super) fn new() -> Self {
            SampledBlocks { filter: Filter::new(), levels: Levels::new() }
        }
    }

    /// Inserts a block that extends into these further spans. Returns `false` and changes nothing
    /// if a bucket is full.
    fn insert(&self, address: usize, packed: PackedBlock, further: Range<usize>) -> bool {
        if address >= sys::ADDRESS_END {
            return false;
        }
        let mark = |span| self.levels.insert(span, Name::overlap(span), address as u64);
        let is_inserted = further.clone().all(mark)
            && self.levels.insert(address >> SPAN_BITS, Name::block(address), packed.word());
        match is_inserted {
            true => self.filter.add(address),
            false => self.remove_overlaps(address, further),
        }
        is_inserted
    }

    /// Removes what was inserted for a block beside its entry.
    fn forget(&self, address: usize, further: Range<usize>) {
        self.filter.remove(address);
        self.remove_overlaps(address, further);
    }

    fn remove_overlaps(&self, address: usize, further: Range<usize>) {
        for span in further {
            let of_span = self.levels.entries_of(span, Name::overlap(span));
            of_span.filter(|entry| entry.word() == address as u64).for_each(Entry::clear);
        }
    }

    /// Returns whether a block at this address may be in the table.
    #[inline(always)]
    fn may_hold(&self, address: usize) -> bool {
        self.filter.may_hold(address)
    }

    /// Returns the entries of the block at this address: one, but for those that a process has
    /// inherited from a thread which was forking or forked, and whose word is 0.
    fn entries_at(&self, address: usize) -> impl Iterator<Item = Entry> {
        let may_hold = self.may_hold(address);
        let at = || self.levels.entries_of(address >> SPAN_BITS, Name::block(address));
        may_hold.then(at).into_iter().flatten()
    }

    /// Returns the starts of blocks that may contain this address.
    fn starts_around(&self, address: usize) -> impl Iterator<Item = usize> {
        let span = address >> SPAN_BITS;
        self.levels.entries_around(span).filter_map(move |entry| {
            match entry.name() == Name::overlap(span) {
                true => usize::try_from(entry.word()).ok(),
                false => entry.name().block_address().filter(|start| start >> SPAN_BITS == span),
            }
            .filter(|start| *start != 0 && *start <= address)
        })
    }
}

impl Blocks {
    /// Inserts a sampled block that the allocator has just returned, and returns `true`. Returns
    /// `false` if the compact table has no space for it: then it needs [`insert`](Self::insert).
    pub(crate) fn insert_sampled(&self, granule: Granule, address: usize, block: Block) -> bool {
        let address = sys::untagged(address);
        let half = granule.is_second_half(address);
        let Some(packed) = self.pack(block, half, true) else { return false };
        let further = further_spans(address, block.usable);
        let is_huge = further.len() > HUGE_SPANS;
        let marked = if is_huge { 0..0 } else { further };
        let is_inserted = self.sampled.insert(address, packed, marked);
        match packed.sizes() {
            Sizes::Record(record) if !is_inserted => self.records.free(record),
            _ if is_inserted && is_huge => self.huge.add(address),
            _ => {}
        }
        is_inserted
    }

    /// Removes a sampled block that is about to be freed, and returns it.
    #[cold]
    pub(super) fn remove_sampled(&self, address: usize) -> Option<Block> {
        let address = sys::untagged(address);
        let owned = self
            .sampled
            .entries_at(address)
            .find_map(|entry| Some((entry, PackedBlock::from_word(entry.own_word())?)));
        let (entry, packed) = owned?;
        let block = self.own_block(packed);
        // The word first: a record that is free belongs to another block.
        entry.clear();
        if let Sizes::Record(record) = packed.sizes() {
            self.records.free(record);
        }
        let further = further_spans(address, block.usable);
        if further.len() > HUGE_SPANS {
            self.huge.remove(address);
            self.sampled.forget(address, 0..0);
        } else {
            self.sampled.forget(address, further);
        }
        Some(block)
    }

    /// Returns whether a sampled block at this address may be in the compact table. Returns `true`
    /// for every block that is.
    #[inline(always)]
    pub(crate) fn may_hold_sampled(&self, address: usize) -> bool {
        self.sampled.may_hold(address)
    }

    /// Returns the sampled block that starts at this address.
    pub(super) fn sampled_at(&self, address: usize) -> Option<LiveBlock> {
        self.sampled.entries_at(address).find_map(|entry| self.read_entry(entry))
    }

    /// Returns the starts of sampled blocks that may contain this address.
    pub(super) fn sampled_around(&self, address: usize) -> impl Iterator<Item = usize> {
        self.sampled.starts_around(address)
    }

    /// Returns the sampled blocks in ascending order of addresses.
    pub(super) fn sampled_ascending(&self) -> impl Iterator<Item = LiveBlock> {
        self.sampled.levels.ascending().filter_map(|entry| self.read_entry(entry))
    }

    /// Returns the block of an entry that another thread may own.
    fn read_entry(&self, entry: Entry) -> Option<LiveBlock> {
        let start = entry.name().block_address()?;
        self.read(|| PackedBlock::from_word(entry.word()), |_| start)
    }

    /// Calls `visit` for the words of the sampled blocks, each with its entry.
    pub(super) fn for_each_sampled_word(&self, mut visit: impl FnMut(Entry, u64)) {
        self.sampled.levels.entries().for_each(|entry| visit(entry, entry.word()));
    }

    /// Returns the bytes mapped for sampled blocks that were never touched.
    pub(super) fn untouched_sampled_bytes(&self) -> usize {
        self.sampled.levels.untouched_bytes()
    }
}
