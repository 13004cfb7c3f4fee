//! What reporters claim during a collection.

use std::cell::{Cell, RefCell};

use memreport::__private::{
    Block as FoundBlock, Claim, Claimant, Found, RecentFields, Recorder, Wrong,
};
use memreport::Field;

use super::blocks::Granule;
use super::claimants::{ClaimantId, Claimants};
use super::entry::{Entry, Generation};
use super::holders::Skips;
use super::hooks::BLOCKS;
use super::numbers::Numbers;
use super::packed::{Packed, Short};
use super::pages::PageList;
use super::radix::ByRegion;

/// A claim and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The start of the block, or the claimed address where there is none.
    pub(crate) address: usize,
    /// It is about a block that lived before the collection: a later one at its address did not.
    pub(crate) is_old: bool,
    /// The bytes that were added to the report.
    pub(crate) bytes: usize,
    pub(crate) claimant: ClaimantId,
    pub(crate) wrong: Option<Wrong>,
}

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

/// A mark, ready to be sorted.
///
/// ```text
/// word 0               the address
/// word 1, bits 0-31    the bytes   } or, of a large block, the number of its bytes in a list
/// word 1, bit 32       large       }
/// word 1, bit 33       old
/// word 1, bits 34-36   what is wrong
/// word 1, bits 37-63   the claimant
/// ```
pub(crate) type Line = [u64; 2];

const LARGE: u64 = 1 << 32;
pub(super) const OLD: u64 = 1 << 33;
const WRONG: u32 = 34;
const CLAIMANT: u32 = 37;
const CLAIMANTS: u32 = 1 << (u64::BITS - CLAIMANT);

/// The second word of a line.
#[inline]
pub(super) fn says(bytes: u64, claimant: ClaimantId, flags: u64) -> u64 {
    bytes | u64::from(claimant.0) << CLAIMANT | flags
}

/// By number.
const WRONGS: [Option<Wrong>; 5] = [
    None,
    Some(Wrong::NonHeap),
    Some(Wrong::Interior),
    Some(Wrong::Partial),
    Some(Wrong::Untracked),
];

/// The address of a mark.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was an address")]
pub(crate) fn address(line: &Line) -> usize {
    line[0] as usize
}

/// The buffer of one collection, in pages of its own.
#[derive(Debug)]
pub(crate) struct Marks {
    granule: Granule,
    /// The generation that began with the collection.
    new: Generation,
    packed: RefCell<Packed>,
    /// The bytes of large blocks.
    large: RefCell<PageList<usize>>,
    /// Marks of claimants whom memory was short for.
    lost: Cell<usize>,
    claimants: Claimants,
    fields: RefCell<Fields>,
    recent_fields: RecentFields,
    skips: RefCell<Skips>,
}

/// The fields that were visited, once each.
#[derive(Debug)]
struct Fields {
    numbers: Numbers<usize>,
    list: PageList<&'static Field>,
}

/// What was heard in one collection.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Sorted by address; those of one address in the order of their claims, which decides which of two is the first.
    lines: PageList<Line>,
    large: PageList<usize>,
    lost: usize,
    pub(crate) claimants: Claimants,
    /// The fields that were visited or skipped.
    pub(crate) fields: PageList<&'static Field>,
    pub(crate) skips: Skips,
}

impl Heard {
    pub(crate) fn lines(&self) -> &[Line] {
        self.lines.as_slice()
    }

    /// What a line says.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]
    pub(crate) fn mark(&self, line: &Line) -> Mark {
        let number = line[1] as u32 as usize;
        let bytes = if line[1] & LARGE == 0 {
            number
        } else {
            self.large.as_slice().get(number).copied().unwrap_or(0)
        };
        Mark {
            address: address(line),
            is_old: line[1] & OLD != 0,
            bytes,
            claimant: ClaimantId((line[1] >> CLAIMANT) as u32),
            wrong: WRONGS.get((line[1] >> WRONG) as usize & 7).copied().flatten(),
        }
    }

    /// Marks that memory was short for.
    pub(crate) fn lost(&self) -> usize {
        self.lost
    }
}

impl Marks {
    /// For a collection with which the generation `new` begins, and in which about so many blocks are claimed.
    pub(crate) fn new(granule: Granule, new: Generation, blocks: usize) -> Self {
        Marks {
            granule,
            new,
            packed: RefCell::new(Packed::with_room(blocks)),
            large: RefCell::new(PageList::new()),
            lost: Cell::new(0),
            claimants: Claimants::of_at_most(CLAIMANTS),
            fields: RefCell::new(Fields { numbers: Numbers::new(), list: PageList::new() }),
            recent_fields: RecentFields::empty(),
            skips: RefCell::new(Skips::new(granule)),
        }
    }

    pub(crate) fn into_heard(self) -> Heard {
        let packed = self.packed.into_inner();
        let mut lost = self.lost.get() + packed.lost();
        let regions = ByRegion::of(packed.lines());
        if regions.is_none() {
            lost += packed.lines().count();
        }
        // Its memory is wanted for what is sorted.
        drop(packed);
        Heard {
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
        match Short::of(address, bytes, claimant, says) {
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
        let line = [address as u64, says(bytes, claimant, flags)];
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
    fn old(&self, entry: Option<Entry>) -> u64 {
        if entry.is_some_and(|entry| entry.birth() != self.new) { OLD } else { 0 }
    }

    #[cold]
    fn note(&self, field: &'static Field, place: usize) {
        let Fields { numbers, list } = &mut *self.fields.borrow_mut();
        if numbers.number(place) == u32::try_from(list.as_slice().len()).ok() {
            list.push(field);
        }
    }
}

impl Recorder for Marks {
    fn claimed(&self, claim: Claim, found: Found, who: Claimant) {
        let Some(address) = subject(claim, found) else { return };
        let block = claimed_block(found);
        let old = self.old(block.and_then(|block| Entry::from_word(block.identity)));
        let wrong = WRONGS.iter().zip(0_u64..).find(|(wrong, _)| **wrong == found.wrong);
        let wrong = wrong.map_or(0, |(_, number)| number << WRONG);
        self.mark(address, found.bytes, who, old | wrong);
    }

    fn claimed_exact(&self, start: usize, size: usize, who: Claimant) -> Option<usize> {
        let (usable, entry) = BLOCKS.whole(self.granule, start, size)?;
        self.mark(start, usable, who, self.old(Some(entry)));
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
        let new = Generation::FIRST;
        let marks = Marks::new(Granule::of_spacing(32), new, 0);
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
        let heard = marks.into_heard();
        let said: Vec<_> = heard.lines().iter().map(|line| heard.mark(line)).collect();
        let expected = [3, 1, 4, 2, 0].map(|index: usize| table[index]);
        assert_eq!(said.len(), table.len());
        for (mark, (address, bytes, wrong, block, reporter)) in said.into_iter().zip(expected) {
            let is_old = block.is_some() && wrong != Some(Wrong::Interior);
            assert_eq!(heard.claimants.who(mark.claimant).reporter, reporter);
            assert_eq!(mark, Mark { address, is_old, bytes, claimant: mark.claimant, wrong });
        }
        assert_eq!(heard.lost(), 0);
    }
}
