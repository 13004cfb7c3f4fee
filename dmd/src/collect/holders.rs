//! What holds the blocks that nobody reports: a field that its type skips, a static, or another such block.
//!
//! While a skipped field is visited, and in the program's data at the end, each word is taken for a pointer. Where it leads to
//! a block that no reporter claims, that block is held there. What the words of such blocks lead to is held through them, unless
//! something else holds it as well: spare room in a block has words from its last life, so this is likely and no more. Memory is
//! read by the kernel: what is gone by now is passed over.

use std::cell::Cell;

use memreport::Field;

use super::claim_words::{self, ClaimWords};
use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;
use crate::mem::sys;
use crate::stack::site;
use crate::table::BLOCKS;
use crate::table::blocks::{Granule, LiveBlock};
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, PackedBlock};

std::thread_local! {
    /// Whether collections of this thread look for holders.
    static IS_WANTED: Cell<bool> = const { Cell::new(true) };
}

/// Runs `work`, whose collections look for no holders: where nobody asks for them, that is a third of a collection saved.
pub(crate) fn unwanted<R>(work: impl FnOnce() -> R) -> R {
    /// Wants them again, also when `work` panics.
    struct Again(bool);

    impl Drop for Again {
        fn drop(&mut self) {
            let _ = IS_WANTED.try_with(|wanted| wanted.set(self.0));
        }
    }

    let _again = Again(IS_WANTED.try_with(|wanted| wanted.replace(false)).unwrap_or(true));
    work()
}

/// What holds a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    Skipped(&'static Field),
    /// The address of the word in the program's data.
    Static(usize),
}

/// The number of a holder, from 1, and whether it holds the block through others; 0 is none that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HolderId(u32);

impl HolderId {
    const THROUGH: u32 = 1 << 31;

    fn through_others(self) -> Self {
        HolderId(self.0 | Self::THROUGH)
    }

    pub(crate) fn number(self) -> u32 {
        self.0 & !Self::THROUGH
    }

    pub(crate) fn is_through_others(self) -> bool {
        self.0 & Self::THROUGH != 0
    }

    /// All of it.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

/// The most of a skipped value, of the program's data and of unreported blocks that is read, in bytes.
const MOST_OF_VALUE: usize = 4096;
const MOST_OF_DATA: usize = 64 << 20;
const MOST_OF_BLOCKS: usize = 64 << 20;

/// The most skipped values that are read in one collection.
const MOST_VALUES: usize = 1 << 16;

/// The blocks that skipped fields point into, as they are visited.
#[derive(Debug)]
pub(crate) struct Skips {
    granule: Granule,
    values: usize,
    found: PageList<Skip>,
}

#[derive(Clone, Copy, Debug)]
struct Skip {
    start: usize,
    identity: u64,
    field: &'static Field,
}

impl Skips {
    pub(crate) fn new(granule: Granule) -> Self {
        Skips { granule, values: 0, found: PageList::new() }
    }

    /// A skipped value lies here, and stays during the call.
    pub(crate) fn visit(&mut self, field: &'static Field, address: usize, size: usize) {
        self.values += 1;
        if self.values > MOST_VALUES {
            return;
        }
        let (granule, found) = (self.granule, &mut self.found);
        each_word(address, address + size.min(MOST_OF_VALUE), |_, word| {
            if let Some(LiveBlock { start, packed, .. }) = BLOCKS.enclosing(granule, word) {
                found.push(Skip { start, identity: packed.word(), field });
            }
        });
    }
}

/// Unreported blocks, and what holds each.
#[derive(Debug)]
pub(crate) struct Holders {
    granule: Granule,
    /// The generation of blocks that are in no dump.
    new: Epoch,
    blocks: LocalInterner<usize>,
    held: PageList<Held>,
    /// By number: the kind, and the address of the field or of the word.
    numbers: LocalInterner<(u32, u64)>,
    holders: PageList<Holder>,
    /// Words of the program's data that point into blocks that are reported.
    pub(crate) reported: PageList<usize>,
    /// Words of the program's data that lead to blocks, reported or not.
    pub(crate) statics: PageList<StaticWord>,
}

/// A word of the program's data that leads to a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticWord {
    /// Where the word is.
    pub(crate) at: usize,
    /// The address that it has.
    pub(crate) to: usize,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    identity: u64,
    requested: usize,
    by: HolderId,
    /// Others hold it too, though not directly.
    is_disputed: bool,
}

impl Holders {
    pub(crate) fn none(granule: Granule, new: Epoch) -> Self {
        Holders {
            granule,
            new,
            blocks: LocalInterner::new(),
            held: PageList::new(),
            numbers: LocalInterner::new(),
            holders: PageList::new(),
            reported: PageList::new(),
            statics: PageList::new(),
        }
    }

    /// Finds them. `marks` are sorted by address, `data` is where the program's statics are.
    pub(crate) fn find(&mut self, skips: &Skips, marks: &[ClaimWords], data: &[(usize, usize)]) {
        if !IS_WANTED.try_with(Cell::get).unwrap_or(true) {
            return;
        }
        for skip in skips.found.as_slice() {
            if let Some(found) = BLOCKS.starting_at(self.granule, skip.start)
                && found.packed.word() == skip.identity
            {
                self.follow(found, Holder::Skipped(skip.field), marks);
            }
        }
        for &(low, high) in data {
            each_word(low, high.min(low.saturating_add(MOST_OF_DATA)), |at, word| {
                let Some(found) = BLOCKS.enclosing(self.granule, word) else { return };
                self.statics.push(StaticWord { at, to: word });
                if !self.follow(found, Holder::Static(at), marks) {
                    self.reported.push(at);
                }
            });
        }
        self.follow_blocks(marks);
    }

    /// What holds this block, if anything was found to.
    pub(crate) fn of(&self, start: usize, packed: PackedBlock) -> HolderId {
        let number = self.blocks.find(start);
        let held = number.and_then(|number| self.held.as_slice().get(number as usize));
        held.filter(|held| held.identity == packed.word() && !held.is_disputed)
            .map_or_else(HolderId::default, |held| held.by)
    }

    pub(crate) fn list(&self) -> &[Holder] {
        self.holders.as_slice()
    }

    /// A word leads to this block. Only if the block is reported, the answer is no.
    fn follow(&mut self, found: LiveBlock, holder: Holder, marks: &[ClaimWords]) -> bool {
        if is_claimed(found.start, marks) {
            return false;
        }
        if self.is_of_program(found.block)
            && let Some(by) = self.number(holder)
        {
            self.hold(found, by);
        }
        true
    }

    /// What lies behind the blocks that were found, in the order in which they were: the nearest holder wins.
    fn follow_blocks(&mut self, marks: &[ClaimWords]) {
        let (mut next, mut read) = (0, 0);
        while let (Some(&Held { requested, by, .. }), Some(&start)) =
            (self.held.as_slice().get(next), self.blocks.keys().get(next))
        {
            next += 1;
            read += requested;
            if read > MOST_OF_BLOCKS {
                return;
            }
            each_word(start, start + requested, |_, word| {
                let found = BLOCKS.starting_at(self.granule, word);
                if let Some(found) = found
                    && self.is_of_program(found.block)
                    && !is_claimed(word, marks)
                {
                    self.hold(found, by.through_others());
                }
            });
        }
    }

    /// A direct holder keeps a block; of others it must be the only one.
    fn hold(&mut self, found: LiveBlock, by: HolderId) {
        let LiveBlock { start, block, packed } = found;
        let Some(number) = self.blocks.intern(start) else { return };
        match self.held.as_mut_slice().get_mut(number as usize) {
            Some(held) => held.is_disputed |= held.by.is_through_others() && held.by != by,
            None => {
                let (identity, requested) = (packed.word(), block.requested);
                self.held.push(Held { identity, requested, by, is_disputed: false });
            }
        }
    }

    fn number(&mut self, holder: Holder) -> Option<HolderId> {
        let key = match holder {
            Holder::Skipped(field) => (0, std::ptr::from_ref(field).addr() as u64),
            Holder::Static(address) => (1, address as u64),
        };
        let number = self.numbers.intern(key)?;
        if number as usize == self.holders.as_slice().len() {
            self.holders.push(holder);
        }
        Some(HolderId(number + 1))
    }

    /// Whether the block is in the dump, and not reported as it was allocated.
    fn is_of_program(&self, block: Block) -> bool {
        block.epoch != self.new && site::site(block.site).is_none_or(|site| site.on_alloc == 0)
    }
}

fn is_claimed(start: usize, marks: &[ClaimWords]) -> bool {
    marks.binary_search_by_key(&start, claim_words::address).is_ok()
}

/// Reads what can be read of a range, word by word.
fn each_word(low: usize, high: usize, mut visit: impl FnMut(usize, usize)) {
    const WORD: usize = size_of::<usize>();
    let mut words = [0; 512];
    let mut at = low.next_multiple_of(WORD);
    while at + WORD <= high {
        let wanted = ((high - at) / WORD).min(words.len());
        let read = sys::read_words_checked(at, &mut words[..wanted]);
        for (word, number) in words[..read].iter().zip(0..) {
            visit(at + number * WORD, *word);
        }
        at += read * WORD;
        if read < wanted {
            // The rest of this page is not there.
            at = (at + 1).next_multiple_of(sys::PAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_wanted_again_afterwards() {
        let is_wanted = || IS_WANTED.try_with(Cell::get) == Ok(true);
        let failed = std::panic::catch_unwind(|| unwanted(|| assert!(is_wanted(), "not now")));
        assert!(failed.is_err() && is_wanted());
    }

    #[test]
    fn what_can_be_read_is_read() {
        let values = [1_usize, 2, 3];
        let low = values.as_ptr().addr();
        let mut seen = Vec::new();
        each_word(low, low + size_of_val(&values), |at, word| seen.push((at - low, word)));
        assert_eq!(seen, [(0, 1), (8, 2), (16, 3)]);
        // The first page of an address space is never there.
        each_word(8, 4096, |at, word| panic!("{word} at {at}"));
    }
}
