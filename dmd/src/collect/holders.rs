//! Holders of unreported blocks: the skipped field, static, or other block that points to them.
//!
//! Words of skipped fields, and of the program's data at the end, are taken for pointers. If one
//! leads to a block without a claim, that field or static holds the block. The words of held blocks
//! are followed in turn, breadth first: what they lead to is held through them. A block with two
//! such indirect holders gets none. Spare capacity contains stale words, so an indirect holder is
//! likely, not certain.
//!
//! Skipped fields are read while their reporter holds the value. Data and blocks are read by the
//! kernel, so memory that was unmapped meanwhile is skipped.
//!
//! Reading order: `words` reads memory by the kernel, `skipped` notes pointers of skipped fields,
//! then this file. `by_address` gives what was found to the pass over all blocks.
//! `enabled` turns the search off. `reached` follows pointers of fields that are measured so.
//! `thread_stacks` has the stacks of a scan.

pub(crate) mod by_address;
pub(crate) mod enabled;
pub(crate) mod reached;
pub(crate) mod skipped;
pub(crate) mod thread_stacks;
mod words;

use memreport::Field;

use self::by_address::{ByAddress, FoundBlock};
use self::skipped::SkippedPointers;
use self::words::{WordBatch, each_word};
use super::claims::words::{ClaimWords, address_of};
use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;
use crate::mem::sys;
use crate::sample::options::Mode;
use crate::stack::site;
use crate::table::BLOCKS;
use crate::table::blocks::{Granule, LiveBlock};
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, PackedBlock};

/// A place outside the heap from which a block is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    /// A field that its type skips.
    Skipped(&'static Field),
    /// A word of the program's data, by its address.
    Static(usize),
}

/// The number of a holder, from 1, with a flag for indirect holders; 0 if none is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HolderId(u32);

impl HolderId {
    const INDIRECT: u32 = 1 << 31;

    fn indirect(self) -> Self {
        HolderId(self.0 | Self::INDIRECT)
    }

    pub(crate) fn number(self) -> u32 {
        self.0 & !Self::INDIRECT
    }

    /// Returns whether the block is held through other blocks.
    pub(crate) fn is_indirect(self) -> bool {
        self.0 & Self::INDIRECT != 0
    }

    /// Returns the number together with the flag.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

/// The maximum bytes to read of the program's data, and of unreported blocks.
const MAX_DATA_BYTES: usize = 64 << 20;
const MAX_BLOCK_BYTES: usize = 64 << 20;

/// Unreported blocks with the holder of each.
#[derive(Debug)]
pub(crate) struct Holders {
    granule: Granule,
    /// The epoch of blocks that are not in the dump.
    epoch: Epoch,
    mode: Mode,
    /// The numbers of the held blocks by their starts, until all are found.
    numbers: LocalInterner<usize>,
    /// The held blocks, in the order in which they were found; by address once all are found.
    held: PageList<HeldBlock>,
    /// Holders by number: 0 for a field or 1 for a static, and the address of the field or the
    /// word.
    ids: LocalInterner<(u32, u64)>,
    holders: PageList<Holder>,
    /// Words of the program's data that point into reported blocks.
    pub(crate) reported: PageList<usize>,
    /// All words of the program's data that lead to blocks, in mode `scan`. No other dump has them.
    pub(crate) statics: PageList<StaticWord>,
}

/// A word of the program's data that leads to a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticWord {
    /// The address of the word.
    pub(crate) address: usize,
    /// The value of the word, which is an address in a block.
    pub(crate) target: usize,
    /// The words around it: three before, itself, and three behind. A `Vec` has its length there.
    /// Words outside of the data are 0.
    pub(crate) around: [usize; 7],
}

impl StaticWord {
    /// Reads the words around a word of the data from `low` to `high`.
    fn read(address: usize, target: usize, (low, high): (usize, usize)) -> Self {
        const WORD: usize = size_of::<usize>();
        let first = address.saturating_sub(3 * WORD);
        let mut around = [0; 7];
        let before = low.next_multiple_of(WORD).saturating_sub(first) / WORD;
        let behind = (first + size_of_val(&around)).saturating_sub(high).div_ceil(WORD);
        if let Some(inside) =
            around.len().checked_sub(behind).and_then(|end| around.get_mut(before..end))
        {
            sys::read_words_checked(first + before * WORD, inside);
        }
        Self { address, target, around }
    }
}

/// An unreported block and its holder.
#[derive(Clone, Copy, Debug)]
struct HeldBlock {
    start: usize,
    /// The block's packed word: a later block at this address has another.
    identity: u64,
    requested: usize,
    holder: HolderId,
    /// True if several indirect holders were found.
    is_ambiguous: bool,
}

impl FoundBlock for HeldBlock {
    fn start(&self) -> usize {
        self.start
    }

    fn identity(&self) -> u64 {
        self.identity
    }
}

impl Holders {
    /// Creates an empty set for a collection that began with `epoch`.
    pub(crate) fn new(granule: Granule, epoch: Epoch, mode: Mode) -> Self {
        Holders {
            granule,
            epoch,
            mode,
            numbers: LocalInterner::new(),
            held: PageList::new(),
            ids: LocalInterner::new(),
            holders: PageList::new(),
            reported: PageList::new(),
            statics: PageList::new(),
        }
    }

    /// Finds the holders. `claims` are sorted by address; `data` are the address ranges of statics.
    pub(crate) fn find(
        &mut self,
        skipped: &SkippedPointers,
        claims: &[ClaimWords],
        data: &[(usize, usize)],
    ) {
        if !enabled::is_enabled() {
            return;
        }
        let is_scan = self.mode == Mode::Scan;
        for pointer in skipped.as_slice() {
            if let Some(found) = BLOCKS.starting_at(self.granule, pointer.start)
                && found.packed.word() == pointer.identity
            {
                self.follow(found, Holder::Skipped(pointer.field), claims);
            }
        }
        for &(low, high) in data {
            let high = high.min(low.saturating_add(MAX_DATA_BYTES));
            each_word(low, high, |address, word| {
                let Some(found) = BLOCKS.enclosing(self.granule, word) else { return };
                if is_scan {
                    self.statics.push(StaticWord::read(address, word, (low, high)));
                }
                if !self.follow(found, Holder::Static(address), claims) {
                    self.reported.push(address);
                }
            });
        }
        self.follow_blocks(claims);
        self.numbers = LocalInterner::new();
        self.held.as_mut_slice().sort_unstable_by_key(|held| held.start);
    }

    /// Adds the words of further data that lead to blocks, for a scan.
    pub(crate) fn add_statics(&mut self, data: &[(usize, usize)]) {
        for &(low, high) in data {
            let high = high.min(low.saturating_add(MAX_DATA_BYTES));
            each_word(low, high, |address, word| {
                if BLOCKS.enclosing(self.granule, word).is_some() {
                    self.statics.push(StaticWord::read(address, word, (low, high)));
                }
            });
        }
    }

    /// Returns the holders of blocks, for a pass over all blocks in the order of their addresses.
    pub(crate) fn by_address(&self) -> HoldersByAddress<'_> {
        HoldersByAddress(ByAddress::new(self.held.as_slice()))
    }

    pub(crate) fn list(&self) -> &[Holder] {
        self.holders.as_slice()
    }

    /// Sets the holder of a block. Returns false only if the block is reported.
    fn follow(&mut self, found: LiveBlock, holder: Holder, claims: &[ClaimWords]) -> bool {
        if is_claimed(found.start, claims) {
            return false;
        }
        if self.is_in_dump(found.block)
            && let Some(holder) = self.id_of(holder)
        {
            self.set_holder(found, holder);
        }
        true
    }

    /// Follows the words of held blocks breadth first, so that the nearest holder is found first.
    fn follow_blocks(&mut self, claims: &[ClaimWords]) {
        let (mut next, mut followed) = (0, 0);
        let mut batch = WordBatch::new();
        while let Some(&first) = self.held.as_slice().get(next) {
            let blocks = self.held.as_slice().get(next..).unwrap_or(&[]);
            let copied = batch.read(blocks.iter().map(|held| (held.start, held.requested)));
            for index in 0..copied.max(1) {
                let Some(&held) = self.held.as_slice().get(next) else { return };
                next += 1;
                followed += held.requested;
                if followed > MAX_BLOCK_BYTES {
                    return;
                }
                let mut follow = |word| self.follow_word(word, held.holder.indirect(), claims);
                if copied > 0 {
                    batch.words(index).iter().for_each(|word| follow(*word));
                } else {
                    let end = first.start + first.requested;
                    each_word(first.start, end, |_, word| follow(word));
                }
            }
        }
    }

    /// Sets the holder of the block that starts where a word points to, if it is unreported.
    fn follow_word(&mut self, word: usize, holder: HolderId, claims: &[ClaimWords]) {
        let found = BLOCKS.starting_at(self.granule, word);
        if let Some(found) = found
            && self.is_in_dump(found.block)
            && !is_claimed(word, claims)
        {
            self.set_holder(found, holder);
        }
    }

    /// Sets the holder of a block that has none. A second indirect holder makes it ambiguous.
    fn set_holder(&mut self, found: LiveBlock, holder: HolderId) {
        let Some(number) = self.numbers.intern(found.start) else { return };
        let count = self.held.as_slice().len();
        match self.held.as_mut_slice().get_mut(number as usize) {
            Some(held) => held.is_ambiguous |= held.holder.is_indirect() && held.holder != holder,
            // An earlier block got its number and no memory, so later numbers are no indices.
            None if number as usize > count => {}
            None => {
                self.held.push(HeldBlock {
                    start: found.start,
                    identity: found.packed.word(),
                    requested: found.block.requested,
                    holder,
                    is_ambiguous: false,
                });
            }
        }
    }

    fn id_of(&mut self, holder: Holder) -> Option<HolderId> {
        let key = match holder {
            Holder::Skipped(field) => (0, std::ptr::from_ref(field).addr() as u64),
            Holder::Static(address) => (1, address as u64),
        };
        let number = self.ids.intern(key)?;
        if number as usize == self.holders.as_slice().len() {
            self.holders.push(holder);
        }
        Some(HolderId(number + 1))
    }

    /// Returns whether the block is in the dump, and not reported on allocation.
    fn is_in_dump(&self, block: Block) -> bool {
        block.epoch != self.epoch && site::site(block.site).is_none_or(|site| site.on_alloc == 0)
    }
}

/// The holders of the blocks that a pass over all blocks has not met yet.
#[derive(Debug)]
pub(crate) struct HoldersByAddress<'h>(ByAddress<'h, HeldBlock>);

impl HoldersByAddress<'_> {
    /// Returns the holder of a block, or the default if none is known. No later block may be at a
    /// lower address.
    #[inline]
    pub(crate) fn holder_of(&mut self, start: usize, packed: PackedBlock) -> HolderId {
        let held = self.0.find(start, packed).filter(|held| !held.is_ambiguous);
        held.map_or_else(HolderId::default, |held| held.holder)
    }
}

fn is_claimed(start: usize, claims: &[ClaimWords]) -> bool {
    claims.binary_search_by_key(&start, address_of).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;

    #[test]
    fn holders_are_found_in_the_order_of_addresses() {
        let epoch = Epoch::FIRST;
        let rate = SamplingRate::EVERY;
        let block = |at: usize| {
            let (site, requested) = (SiteId::UNKNOWN, 8 + at);
            let block = Block { requested, usable: 48, site, epoch, rate, time: 0 };
            (block, PackedBlock::small(block, false).expect("it is small"))
        };
        let mut holders = Holders::new(Granule::OF_32, epoch.next(), Mode::DarkMatter);
        let id = |number: u32| HolderId(number);
        // The last one has two indirect holders.
        for (at, holder) in [(7, id(3)), (1, id(2)), (4, id(1).indirect()), (9, id(1).indirect())] {
            let (block, packed) = block(at);
            holders.set_holder(LiveBlock { start: at * 64, block, packed }, holder);
        }
        let (other, packed) = block(9);
        holders.set_holder(LiveBlock { start: 9 * 64, block: other, packed }, id(5).indirect());
        holders.find(&SkippedPointers::new(Granule::OF_32), &[], &[]);
        let mut by_address = holders.by_address();
        for (at, expected) in [
            (0, HolderId::default()),
            (1, id(2)),
            (2, HolderId::default()),
            (4, id(1).indirect()),
            (7, id(3)),
            (9, HolderId::default()),
            (10, HolderId::default()),
        ] {
            assert_eq!(by_address.holder_of(at * 64, block(at).1), expected, "{at}");
        }
        // A later block at the address has another identity.
        assert_eq!(holders.by_address().holder_of(7 * 64, block(8).1), HolderId::default());
    }

    #[test]
    fn the_words_around_a_static_are_those_of_its_data() {
        let words: [usize; 9] = std::array::from_fn(|index| 10 + index);
        let at = |index: usize| words.as_ptr().addr() + index * size_of::<usize>();
        // The index of the word, the range of the data, and the words around.
        for (index, low, high, expected) in [
            (4, at(0), at(9), [11, 12, 13, 14, 15, 16, 17]),
            (4, at(3), at(6), [0, 0, 13, 14, 15, 0, 0]),
            (4, at(4), at(5), [0, 0, 0, 14, 0, 0, 0]),
            // Words that are in the data in part.
            (4, at(2) + 1, at(6) + 7, [0, 0, 13, 14, 15, 0, 0]),
            (1, at(0), at(9), [0, 0, 10, 11, 12, 13, 14]),
            (8, at(0), at(9), [15, 16, 17, 18, 0, 0, 0]),
        ] {
            let word = StaticWord::read(at(index), words[index], (low, high));
            assert_eq!(word.around, expected, "{index}");
            assert_eq!((word.address, word.target), (at(index), words[index]));
        }
    }
}
