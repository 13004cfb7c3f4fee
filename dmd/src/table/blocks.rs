//! A lock-free radix tree from block address to packed block, and a compact table beside it
//! (`sampled`).
//!
//! The tree has three levels: an array of 8,192 entries (16,384 on aarch64), nodes of 2,048 leaves,
//! and leaves of 8 MiB (`leaf`). All are mapped on first use and never unmapped. A block marks each
//! further span, 1 MiB, that it extends into, so that it is found from any address inside; the
//! starts of huge blocks are in a list instead (`huge`).
//!
//! Only the owner of a block writes its word: after the allocator returns the block, and before the
//! block is freed. So an insertion or removal is one store, without a lock or a read-modify-write.
//! Other threads may read a word at any time. Two exceptions use compare-and-exchange, and lose the
//! race against an owner: ageing and clearing tombstones.
//!
//! A block is in the tree or in the compact table, never in both. Look-ups ask the tree first, and
//! the compact table only if its filter has the address.

mod granule;
mod leaf;
mod huge;
mod sampled;
mod ageing;
mod enclosing;
#[cfg(not(loom))]
mod tombstones;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use self::granule::Granule;
use std::ptr;

use self::huge::{HUGE_SPANS, HugeStarts};
use self::leaf::{
    LEAF_BITS, MIDDLE_BITS, MappedLeaf, Node, SPAN_BITS, WORDS_PER_PAGE, crosses_spans,
    ends_in_span, further_spans,
};
use self::sampled::SampledBlocks;
use super::packed_block::{Block, PackedBlock, Sizes, SmallBlock};
use super::records::{Record, Records};
use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU64, AtomicUsize, array_of, const_fn, load_own};
use crate::mem::sys;

/// The bits of an address that choose a node.
const TOP_BITS: u32 = if cfg!(loom) {
    0
} else if cfg!(miri) {
    10
} else {
    sys::ADDRESS_BITS - MIDDLE_BITS - LEAF_BITS
};

/// The bits of an address below those that choose a node.
const TOP_SHIFT: u32 = LEAF_BITS + MIDDLE_BITS;

const _: () =
    assert!(cfg!(any(loom, miri)) || 1 << (LEAF_BITS + MIDDLE_BITS + TOP_BITS) == sys::ADDRESS_END);

/// The table of live blocks.
pub(crate) struct Blocks {
    top: [LazySlice<Node>; 1 << TOP_BITS],
    records: Records,
    huge: HugeStarts,
    sampled: SampledBlocks,
    /// The number of blocks that were not inserted: no memory for a leaf, or an address past the
    /// end.
    lost: AtomicUsize,
}

/// A live block that was found in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveBlock {
    pub(crate) start: usize,
    pub(crate) block: Block,
    /// The word at the moment of the look-up. It identifies the block until a later one at the same
    /// address.
    pub(crate) packed: PackedBlock,
}

impl Blocks {
    const_fn! {
        pub(crate) fn new() -> Self {
            Blocks {
                top: array_of!(LazySlice::new(); 1 << TOP_BITS),
                records: Records::new(),
                huge: HugeStarts::new(),
                sampled: SampledBlocks::new(),
                lost: AtomicUsize::new(0),
            }
        }
    }

    /// Inserts a block that the allocator has just returned.
    pub(crate) fn insert(&self, granule: Granule, address: usize, block: Block) {
        let Some(leaf) = self.leaf_or_alloc(granule, address) else { return self.count_lost() };
        let half = granule.is_second_half(address);
        // A small block lies in one span, so that its removal need not ask.
        let is_in_span = !crosses_spans(address, block.usable);
        let Some(packed) = self.pack(block, half, is_in_span) else { return self.count_lost() };
        leaf.store_word(granule, address, packed.word());
        if !is_in_span {
            self.mark_overlaps(granule, address, block.usable, address);
        }
    }

    /// Packs a block, with a record if it does not fit without, or `may_be_small` is false. Returns
    /// `None` when memory is short.
    fn pack(&self, block: Block, half: bool, may_be_small: bool) -> Option<PackedBlock> {
        let small = PackedBlock::small(block, half).filter(|_| may_be_small);
        small.or_else(|| {
            let Block { requested, usable, time, .. } = block;
            let record = self.records.insert(Record { requested, usable, time })?;
            Some(PackedBlock::with_record(block, half, record))
        })
    }

    /// Inserts a block whose word is complete but for the sizes and the half, and returns `true`.
    /// Returns `false` if the leaf is not mapped yet, the block needs a record, or it does not end
    /// in its span. These need [`insert`](Self::insert).
    #[inline(always)]
    pub(crate) fn insert_prepared(
        &self,
        granule: Granule,
        address: usize,
        (requested, usable): (usize, usize),
        word: u64,
    ) -> bool {
        let half = granule.is_second_half(address);
        // The sizes of a block that ends in its span have at most `SPAN_BITS` bits.
        if let Some(leaf) = self.leaf(granule, address)
            && ends_in_span(address, usable)
            && let Some(word) = PackedBlock::with_sizes(word, half, requested, usable)
        {
            leaf.store_word(granule, address, word);
            return true;
        }
        false
    }

    /// Removes a block that is about to be freed, and returns it.
    #[inline]
    pub(crate) fn remove(&self, granule: Granule, address: usize) -> Option<Block> {
        self.remove_with(granule, address, |_, _| 0).or_else(|| self.remove_sampled(address))
    }

    /// Removes a block from the tree, and stores the word that `after` makes of it.
    #[inline]
    fn remove_with(
        &self,
        granule: Granule,
        address: usize,
        after: impl FnOnce(Block, bool) -> u64,
    ) -> Option<Block> {
        let word = self.word(granule, address)?;
        let packed = PackedBlock::from_word(load_own(word))?;
        if packed.is_second_half() != granule.is_second_half(address) {
            return None;
        }
        let block = self.own_block(packed);
        // A store is enough: only ageing writes the word of another thread's live block, and its
        // compare-and-exchange then fails. Release, with the Acquire in `read`.
        word.store(after(block, packed.is_second_half()), Release);
        if let Sizes::Record(record) = packed.sizes() {
            self.records.free(record);
        }
        if crosses_spans(address, block.usable) {
            self.mark_overlaps(granule, address, block.usable, 0);
        }
        Some(block)
    }

    /// Removes a block and returns its usable bytes. Returns `None` for a sampled block and for one
    /// with a record, as every one that extends into another span has: they need
    /// [`remove`](Self::remove).
    #[inline(always)]
    pub(crate) fn remove_small(&self, granule: Granule, address: usize) -> Option<usize> {
        let word = self.word(granule, address)?;
        let usable = PackedBlock::small_size(load_own(word), granule.is_second_half(address))?;
        // Release, as in `remove_with`.
        word.store(0, Release);
        Some(usable)
    }

    /// Removes a block without a look at its word, and returns `true`. Returns `false` and changes
    /// nothing if the block extends into another span.
    ///
    /// The block is in the tree, without a time, and its word has its sizes: a record would be
    /// lost.
    #[inline(always)]
    pub(crate) fn remove_unseen(&self, granule: Granule, address: usize, usable: usize) -> bool {
        if let Some(leaf) = self.leaf(granule, address)
            && ends_in_span(address, usable)
        {
            // Release, as in `remove_with`.
            leaf.word(granule, address).store(0, Release);
            return true;
        }
        false
    }

    /// Returns whether the table may contain a block at this address. Where few blocks are tracked,
    /// the filter and the bitmap of touched pages answer without a read of the block's word.
    #[inline]
    pub(crate) fn may_hold(&self, granule: Granule, address: usize) -> bool {
        self.may_hold_sampled(address) || self.may_hold_in_tree(granule, address)
    }

    #[inline]
    fn may_hold_in_tree(&self, granule: Granule, address: usize) -> bool {
        self.leaf(granule, address).is_some_and(|leaf| leaf.may_hold(granule, address))
    }

    /// Returns the block that starts at this address.
    pub(crate) fn starting_at(&self, granule: Granule, address: usize) -> Option<LiveBlock> {
        let address = sys::untagged(address);
        self.in_tree(granule, address).or_else(|| self.sampled_at(address))
    }

    fn in_tree(&self, granule: Granule, address: usize) -> Option<LiveBlock> {
        if !granule.is_start(address) {
            return None;
        }
        let found = self.read_word(self.word(granule, address)?, |_| address)?;
        (found.packed.is_second_half() == granule.is_second_half(address)).then_some(found)
    }

    /// Returns the block that starts at this address, if it has this requested size and no record,
    /// and was not sampled.
    #[inline]
    pub(crate) fn find_small(
        &self,
        granule: Granule,
        address: usize,
        requested: usize,
    ) -> Option<SmallBlock> {
        let word = self.word(granule, address).filter(|_| granule.is_start(address))?;
        // Acquire, with the Release in `store_word`.
        let word = word.load(Acquire);
        PackedBlock::match_small(word, requested, granule.is_second_half(address))
    }

    /// Returns the word for a block that starts at this address; `None` if its leaf is not mapped.
    #[inline(always)]
    pub(crate) fn word(&self, granule: Granule, address: usize) -> Option<&'static AtomicU64> {
        self.leaf(granule, address).map(|leaf| leaf.word(granule, address))
    }

    /// Returns the address of the word for a block at this address, or null if its leaf is not
    /// mapped. For prefetching.
    #[inline]
    pub(crate) fn word_address(&self, granule: Granule, address: usize) -> *const u8 {
        let word = self.word(granule, address);
        word.map_or(ptr::null(), |word| ptr::from_ref(word).cast())
    }

    /// Calls `visit` for every live block, in ascending order of addresses. Blocks that are
    /// inserted or removed meanwhile may be missed; all others are visited exactly once.
    pub(crate) fn for_each(&self, granule: Granule, mut visit: impl FnMut(LiveBlock)) {
        let mut sampled = self.sampled_ascending().peekable();
        self.for_each_word(granule, |index, word| {
            let start = |packed: PackedBlock| granule.start(index, packed.is_second_half());
            if let Some(found) = self.read_word(word, start) {
                while let Some(before) = sampled.next_if(|other| other.start < found.start) {
                    visit(before);
                }
                visit(found);
            }
        });
        sampled.for_each(visit);
    }

    /// Returns the bytes mapped for the tree and for sampled blocks whose pages were never touched:
    /// these are not resident.
    pub(crate) fn untouched_bytes(&self, granule: Granule) -> usize {
        let in_nodes: usize = self.nodes().map(|(_, node)| node.untouched_bytes(granule)).sum();
        let in_leaves: usize = self.leaves(granule).map(|(_, leaf)| leaf.untouched_bytes()).sum();
        in_nodes + in_leaves + self.untouched_sampled_bytes()
    }

    /// Returns the number of blocks that were not inserted because memory was short.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Relaxed)
    }

    /// Calls `visit` for each word on a touched page, with the index of its granule in the address
    /// space.
    fn for_each_word(&self, granule: Granule, mut visit: impl FnMut(usize, &AtomicU64)) {
        for (base, leaf) in self.leaves(granule) {
            for first in leaf.touched_pages(granule) {
                let page = &leaf.words[first..first + WORDS_PER_PAGE];
                for (index, word) in page.iter().enumerate() {
                    visit(base + first + index, word);
                }
            }
        }
    }

    /// Returns the mapped leaves, each with the index of its first granule in the address space.
    fn leaves(&self, granule: Granule) -> impl Iterator<Item = (usize, MappedLeaf)> {
        self.nodes().flat_map(move |(high, node)| {
            node.leaves(granule).map(move |(low, leaf)| {
                (((high << MIDDLE_BITS) + low) << (LEAF_BITS - granule.shift), leaf)
            })
        })
    }

    /// Returns the mapped nodes, each with its number.
    fn nodes(&self) -> impl Iterator<Item = (usize, &'static Node)> {
        let nodes = self.top.iter().enumerate();
        nodes.filter_map(|(number, node)| Some((number, node.get(1)?.first()?)))
    }

    /// Reads the block of a word of the tree that another thread may own.
    fn read_word(
        &self,
        word: &AtomicU64,
        start: impl FnOnce(PackedBlock) -> usize,
    ) -> Option<LiveBlock> {
        // Acquire, with the Release in `store_word`: the record is written before the word.
        self.read(|| PackedBlock::from_word(word.load(Acquire)), start)
    }

    /// Reads a block that another thread may own. `load` loads its word with Acquire.
    fn read(
        &self,
        load: impl Fn() -> Option<PackedBlock>,
        start: impl FnOnce(PackedBlock) -> usize,
    ) -> Option<LiveBlock> {
        loop {
            let packed = load()?;
            let record = match packed.sizes() {
                Sizes::Inline { requested, usable } => Some(Record { requested, usable, time: 0 }),
                Sizes::Record(record) => self.records.read(record, || load() == Some(packed)),
            };
            if let Some(record) = record {
                return Some(LiveBlock {
                    start: start(packed),
                    block: block_of(packed, record),
                    packed,
                });
            }
        }
    }

    /// Returns the block of a word that this thread owns.
    fn own_block(&self, packed: PackedBlock) -> Block {
        let record = match packed.sizes() {
            Sizes::Inline { requested, usable } => Record { requested, usable, time: 0 },
            Sizes::Record(record) => self.records.get(record),
        };
        block_of(packed, record)
    }

    /// Stores `start` as the overlap of every further span that the block extends into: the block's
    /// address, or 0 when the block is removed. Huge blocks go into their list instead.
    #[cold]
    fn mark_overlaps(&self, granule: Granule, address: usize, usable: usize, start: usize) {
        let (address, start) = (sys::untagged(address), sys::untagged(start));
        let further = further_spans(address, usable);
        if further.len() > HUGE_SPANS {
            return if start == 0 { self.huge.remove(address) } else { self.huge.add(start) };
        }
        for span in further {
            if let Some(leaf) = self.leaf_or_alloc(granule, span << SPAN_BITS) {
                leaf.set_overlap(span << SPAN_BITS, start);
            }
        }
    }

    #[inline]
    fn leaf(&self, granule: Granule, address: usize) -> Option<MappedLeaf> {
        let address = sys::untagged(address);
        let number = ptr::without_provenance_mut(address >> TOP_SHIFT);
        let node = self.top.get(sys::opaque(number).addr())?.get(1)?;
        node.first()?.leaf(granule, address)
    }

    #[inline]
    fn leaf_or_alloc(&self, granule: Granule, address: usize) -> Option<MappedLeaf> {
        let address = sys::untagged(address);
        let node = self.top.get(address >> TOP_SHIFT)?.get_or_alloc(1)?;
        node.first()?.leaf_or_alloc(granule, address)
    }

    #[cold]
    fn count_lost(&self) {
        self.lost.fetch_add(1, Relaxed);
    }
}

fn block_of(packed: PackedBlock, Record { requested, usable, time }: Record) -> Block {
    let (site, epoch, rate) = (packed.site(), packed.epoch(), packed.rate());
    Block { requested, usable, site, epoch, rate, time }
}
