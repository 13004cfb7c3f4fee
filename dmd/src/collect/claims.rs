//! What reporters claim during a collection.

use std::cell::{Cell, RefCell};

use memreport::__private::{
    Block as FoundBlock, Claim, Claimant, Found, RecentFields, Recorder, Wrong,
};
use memreport::Field;

use super::claim_words::{
    CLAIMANT, CLAIMANTS, ClaimWords, LARGE, OLD, ResolvedClaim, WRONG, WRONGS, address, second_word,
};
use super::claimants::{ClaimantId, Claimants};
use super::holders::Skips;
use super::packed_claims::{Packed, ShortClaim};
use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;
use crate::mem::radix_sort::ByRegion;
use crate::table::BLOCKS;
use crate::table::blocks::Granule;
use crate::table::epoch::Epoch;
use crate::table::packed_block::{PackedBlock, SmallBlock};

/// What a claim is about: the block that was found, or the address where it is none's start. `None` if it is about nothing.
pub(crate) fn subject(claim: Claim, found: Found) -> Option<usize> {
    if found.block.is_none() && found.wrong.is_none() {
        // Some values own nothing, and are asked about all the same.
        return None;
    }
    Some(claimed_block(found).map_or(claim.address, |block| block.start))
}

/// A claim inside a block is about that address, not about the block.
fn claimed_block(found: Found) -> Option<FoundBlock> {
    found.block.filter(|_| found.wrong != Some(Wrong::Interior))
}

/// The buffer of one collection, in pages of its own.
#[derive(Debug)]
pub(crate) struct ClaimBuffer {
    granule: Granule,
    /// The generation that began with the collection.
    new: Epoch,
    packed: RefCell<Packed>,
    /// The bytes of large blocks.
    large: RefCell<PageList<usize>>,
    /// ClaimBuffer of claimants whom memory was short for.
    lost: Cell<usize>,
    claimants: Claimants,
    fields: RefCell<Fields>,
    recent_fields: RecentFields,
    skips: RefCell<Skips>,
}

/// The fields that were visited, once each.
#[derive(Debug)]
struct Fields {
    numbers: LocalInterner<usize>,
    list: PageList<&'static Field>,
}

/// What was heard in one collection.
#[derive(Debug)]
pub(crate) struct ClaimLog {
    /// Sorted by address; those of one address in the order of their claims, which decides which of two is the first.
    lines: PageList<ClaimWords>,
    large: PageList<usize>,
    lost: usize,
    pub(crate) claimants: Claimants,
    /// The fields that were visited or skipped.
    pub(crate) fields: PageList<&'static Field>,
    pub(crate) skips: Skips,
}

impl ClaimLog {
    pub(crate) fn lines(&self) -> &[ClaimWords] {
        self.lines.as_slice()
    }

    /// What a line says.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]
    pub(crate) fn mark(&self, line: &ClaimWords) -> ResolvedClaim {
        let number = line[1] as u32 as usize;
        let bytes = if line[1] & LARGE == 0 {
            number
        } else {
            self.large.as_slice().get(number).copied().unwrap_or(0)
        };
        ResolvedClaim {
            address: address(line),
            is_old: line[1] & OLD != 0,
            bytes,
            claimant: ClaimantId((line[1] >> CLAIMANT) as u32),
            wrong: WRONGS.get((line[1] >> WRONG) as usize & 7).copied().flatten(),
        }
    }

    /// ClaimBuffer that memory was short for.
    pub(crate) fn lost(&self) -> usize {
        self.lost
    }
}

impl ClaimBuffer {
    /// For a collection with which the generation `new` begins, and in which about so many blocks are claimed.
    pub(crate) fn new(granule: Granule, new: Epoch, blocks: usize) -> Self {
        ClaimBuffer {
            granule,
            new,
            packed: RefCell::new(Packed::with_room(blocks)),
            large: RefCell::new(PageList::new()),
            lost: Cell::new(0),
            claimants: Claimants::of_at_most(CLAIMANTS),
            fields: RefCell::new(Fields { numbers: LocalInterner::new(), list: PageList::new() }),
            recent_fields: RecentFields::empty(),
            skips: RefCell::new(Skips::new(granule)),
        }
    }

    pub(crate) fn into_log(self) -> ClaimLog {
        let packed = self.packed.into_inner();
        let mut lost = self.lost.get() + packed.lost();
        let regions = ByRegion::group(packed.lines());
        if regions.is_none() {
            lost += packed.lines().count();
        }
        // Its memory is wanted for what is sorted.
        drop(packed);
        ClaimLog {
            lines: regions.map_or_else(PageList::new, ByRegion::sorted),
            large: self.large.into_inner(),
            lost,
            claimants: self.claimants,
            fields: self.fields.into_inner().list,
            skips: self.skips.into_inner(),
        }
    }

    /// Adds a mark; `says` has its flags.
    #[inline]
    fn mark(&self, address: usize, bytes: usize, who: Claimant, says: u64) {
        let Some(claimant) = self.claimants.number(who) else { return self.lose() };
        match ShortClaim::of(address, bytes, claimant, says) {
            // One that is lost is counted there.
            Some(short) => _ = self.packed.borrow_mut().push(short),
            None => self.mark_long(address, bytes, claimant, says),
        }
    }

    #[cold]
    fn mark_long(&self, address: usize, bytes: usize, claimant: ClaimantId, flags: u64) {
        let Some(bytes) =
            u32::try_from(bytes).map_or_else(|_| self.large(bytes), |bytes| Some(bytes.into()))
        else {
            return self.lose();
        };
        let line = [address as u64, second_word(bytes, claimant, flags)];
        // One that is lost is counted there.
        let _ = self.packed.borrow_mut().push_line(line);
    }

    fn large(&self, bytes: usize) -> Option<u64> {
        let mut large = self.large.borrow_mut();
        let number = u32::try_from(large.as_slice().len()).ok()?;
        large.push(bytes).then(|| LARGE | u64::from(number))
    }

    #[cold]
    fn lose(&self) {
        self.lost.set(self.lost.get() + 1);
    }

    #[inline]
    fn old(&self, packed: Option<PackedBlock>) -> u64 {
        if packed.is_some_and(|packed| packed.epoch() != self.new) { OLD } else { 0 }
    }

    #[cold]
    fn note(&self, field: &'static Field, place: usize) {
        let Fields { numbers, list } = &mut *self.fields.borrow_mut();
        if numbers.intern(place) == u32::try_from(list.as_slice().len()).ok() {
            list.push(field);
        }
    }
}

impl Recorder for ClaimBuffer {
    fn claimed(&self, claim: Claim, found: Found, who: Claimant) {
        let Some(address) = subject(claim, found) else { return };
        let block = claimed_block(found);
        let old = self.old(block.and_then(|block| PackedBlock::from_word(block.identity)));
        let wrong = WRONGS.iter().zip(0_u64..).find(|(wrong, _)| **wrong == found.wrong);
        let wrong = wrong.map_or(0, |(_, number)| number << WRONG);
        self.mark(address, found.bytes, who, old | wrong);
    }

    fn claimed_exact(&self, start: usize, size: usize, who: Claimant) -> Option<usize> {
        let SmallBlock { usable, packed } = BLOCKS.find_small(self.granule, start, size)?;
        self.mark(start, usable, who, self.old(Some(packed)));
        Some(usable)
    }

    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        self.note(field, std::ptr::from_ref(field).addr());
        if field.reason().is_some() {
            self.skips.borrow_mut().visit(field, address, size);
        }
    }

    fn recent_fields(&self) -> Option<&RecentFields> {
        Some(&self.recent_fields)
    }

    fn position(&self) -> usize {
        self.packed.borrow().position()
    }

    fn roll_back(&self, position: usize) {
        self.packed.borrow_mut().truncate(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_marked() {
        let new = Epoch::FIRST;
        let marks = ClaimBuffer::new(Granule::of_spacing(32), new, 0);
        let who = |reporter| Claimant { reporter, field: None };
        let block = |start| FoundBlock { start, requested: 8, usable: 24, identity: 1 };
        let inside = Some(block(0x20));
        let table = [
            (0x7fff_ffff_fff0, 24, None, Some(block(0x7fff_ffff_fff0)), 1),
            (0x10, 1 << 40, Some(Wrong::Partial), Some(block(0x10)), 2),
            (0x28, u32::MAX as usize, Some(Wrong::Interior), inside, 2),
            (0x7, 0, Some(Wrong::NonHeap), None, 3),
            (0x10, 5, Some(Wrong::Untracked), None, 1),
        ];
        for (address, bytes, wrong, block, reporter) in table {
            let place = memreport::__private::Place::Start;
            let claim = Claim { address, size: Some(bytes), place };
            marks.claimed(claim, Found { bytes, block, wrong }, who(reporter));
        }
        let heard = marks.into_log();
        let said: Vec<_> = heard.lines().iter().map(|line| heard.mark(line)).collect();
        let expected = [3, 1, 4, 2, 0].map(|index: usize| table[index]);
        assert_eq!(said.len(), table.len());
        for (mark, (address, bytes, wrong, block, reporter)) in said.into_iter().zip(expected) {
            let is_old = block.is_some() && wrong != Some(Wrong::Interior);
            assert_eq!(heard.claimants.who(mark.claimant).reporter, reporter);
            assert_eq!(
                mark,
                ResolvedClaim { address, is_old, bytes, claimant: mark.claimant, wrong }
            );
        }
        assert_eq!(heard.lost(), 0);
    }
}
