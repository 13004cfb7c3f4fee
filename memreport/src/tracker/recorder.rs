//! Defines the recorder that receives a collection's claims.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::claim::{AroundBegin, Claim, CountedBlocks, ExpectedBlocks, Found};
use super::claim_batch::QuickClaims;
use super::claimant::Claimant;
use super::region_blocks::RegionBlocks;
use super::short_claim::Region;
use crate::field::Field;
use crate::tracker::words::Words;

/// A recorder of all claims of one collection, in the order in which they are made.
pub trait Recorder {
    /// Records a claim and the answer of the look-up.
    fn claimed(&self, claim: Claim, found: Found, claimant: Claimant);

    /// Returns where claims of blocks with known sizes can be added without a call.
    fn quick_claims(&self) -> Option<QuickClaims<'_>> {
        None
    }

    /// Checks the claims that were added so since the last call. Called while their blocks live,
    /// since the table has no others.
    fn check_quick_claims(&self) {}

    /// Makes room for quick claims. The newest may stay unchecked.
    fn make_room(&self) {}

    /// Records several blocks, all for this reporter, and counts their usable bytes. `missed`
    /// receives each block that has no quick way.
    fn claimed_expected(&self, blocks: ExpectedBlocks<'_>, reporter: u32) -> CountedBlocks {
        let _ = reporter;
        blocks.look_up(|_| None)
    }

    /// Returns whether [`known_region`](Self::known_region) has all blocks.
    fn knows_all_regions(&self) -> bool {
        false
    }

    /// Returns the blocks that were live when the collection began, of one region after the other;
    /// `None` after the last one.
    fn nth_region(&self, index: usize) -> Option<RegionBlocks<'_>> {
        let _ = index;
        None
    }

    /// Returns the blocks of this region that were live when the collection began; `None` if there
    /// was none.
    fn known_region(&self, region: Region) -> Option<RegionBlocks<'_>> {
        (0..).map_while(|index| self.nth_region(index)).find(|blocks| blocks.region == region)
    }

    /// Returns the block that contained this address when the collection began.
    fn around_begin(&self, address: usize) -> AroundBegin {
        let _ = address;
        AroundBegin::Unknown
    }

    /// Notes that the walk measures this field, which lies at `address` and has `size` bytes.
    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        let _ = (field, address, size);
    }

    /// Notes that the walk skips this field, with the words of its value. See
    /// [`visits`](Self::visits).
    fn skips(&self, field: &'static Field, address: usize, size: usize, words: Words<'_>) {
        let _ = words;
        self.visits(field, address, size);
    }

    /// Returns a cache of fields of which the recorder needs no further [visit](Self::visits).
    fn visited_fields(&self) -> &FieldCache {
        &NO_FIELDS
    }

    /// Returns a cache of skipped fields of which the recorder needs no further value.
    fn read_fields(&self) -> &FieldCache {
        &NO_FIELDS
    }

    /// Reads the words of a value, and notes the blocks that they lead to. At the end of the
    /// collection, what these lead to is attributed to the claimant, as far as nobody claims it.
    fn reaches(&self, words: Words<'_>, claimant: Claimant) {
        let _ = (words, claimant);
    }

    /// Returns the position after everything that was recorded so far.
    fn position(&self) -> Position;

    /// Discards the claims and the pointers of foreign values from this position on, because the
    /// reporter that made them failed. Visited and skipped fields stay.
    fn roll_back(&self, position: Position);
}

/// A position between two reporters in what a recorder has recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of claims before it, in the recorder's unit.
    pub claims: usize,
    /// The number of pointers of foreign values before it.
    pub reached: usize,
}

/// A direct-mapped cache of fields, by the field's address.
// Atomic, so that an empty one can be a static.
#[derive(Debug)]
pub struct FieldCache([AtomicUsize; 64]);

/// No field, for recorders that need all of them.
static NO_FIELDS: FieldCache = FieldCache::empty();

impl FieldCache {
    /// Creates an empty cache.
    #[must_use]
    pub const fn empty() -> Self {
        FieldCache([const { AtomicUsize::new(0) }; 64])
    }

    /// Inserts a field, in place of the one in its slot.
    #[inline]
    pub fn insert(&self, field: &'static Field) {
        let (place, address) = self.place(field);
        place.store(address, Relaxed);
    }

    /// Returns whether a field's slot holds it.
    #[inline(always)]
    pub(crate) fn contains(&self, field: &'static Field) -> bool {
        let (place, address) = self.place(field);
        place.load(Relaxed) == address
    }

    #[inline(always)]
    fn place(&self, field: &'static Field) -> (&AtomicUsize, usize) {
        let address = core::ptr::from_ref(field).addr();
        (&self.0[address / align_of::<Field>() % self.0.len()], address)
    }
}
