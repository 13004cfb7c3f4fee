//! Holds the state that all measurements of a collection share: size source, recorder, visited
//! blocks.

use core::cell::{Cell, RefCell};
#[cfg(feature = "std")]
use std::time::Duration;

#[cfg(feature = "std")]
use super::locks::LockTime;
use super::pending::ClaimOwnBlock;
use crate::allocator::size_source::{SizeSource, UsableSizeFn};
use crate::field::Field;
use crate::measure::known_blocks::KnownBlocks;
use crate::tracker::claim_batch::QuickClaims;
use crate::tracker::recorder::{FieldCache, Recorder};
use crate::tracker::size_classes::SizeClasses;

/// Shared blocks by address, with the reporter that visited each first.
#[cfg(feature = "std")]
type VisitedBlocks =
    std::collections::HashMap<usize, u32, core::hash::BuildHasherDefault<AddressHasher>>;
#[cfg(not(feature = "std"))]
type VisitedBlocks = alloc::collections::BTreeMap<usize, u32>;

/// One collection, or the measurement of a single value.
pub(crate) struct Collection<'c> {
    pub(super) sizes: SizeSource,
    pub(super) recorder: Option<&'c dyn Recorder>,
    /// The size query of the program's allocator.
    pub(super) usable_size: UsableSizeFn,
    /// The same query, if blocks of known layouts are counted at once and not claimed.
    pub(super) queries_own_blocks: Option<UsableSizeFn>,
    /// The way in which blocks are claimed.
    pub(super) claiming: Claiming,
    /// Claims a borrowed block in that way.
    pub(super) claim_own_block: ClaimOwnBlock,
    /// Where claims with known sizes are added.
    pub(super) quick_claims: Option<QuickClaims<'c>>,
    /// The size classes of the allocator, if sizes come from it or from a tracker.
    pub(super) classes: &'static SizeClasses,
    /// True if sizes are read from the words before blocks, if only of some.
    pub(super) reads_headers: bool,
    /// The blocks from the beginning, if the recorder knows them without a look-up.
    pub(super) known_blocks: Option<KnownBlocks<'c>>,
    visited_fields: Option<&'c FieldCache>,
    read_fields: Option<&'c FieldCache>,
    visited: RefCell<VisitedBlocks>,
    /// The ordinal of the collection's reporter that runs.
    pub(super) run: Cell<u32>,
    /// The number of the reporter that claims refer to.
    pub(super) reporter: Cell<u32>,
    #[cfg(feature = "std")]
    pub(super) locks: LockTime,
}

/// The way in which a collection claims the blocks of borrowed values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Claiming {
    /// Later: blocks wait in a ring, and their sizes follow from the recorder's copy of the table.
    Later,
    /// At once, with size classes. The table has every block, and the recorder checks the claims.
    ByClass,
    /// At once, with size classes or the allocator's answer: the table has gaps.
    ByQuery,
    /// At once, with the word before the block or the allocator's answer: the table has gaps.
    BySizeWord,
}

impl<'c> Collection<'c> {
    /// Creates the state for a single measurement, without a recorder.
    pub(crate) fn unrecorded() -> Self {
        Collection::new(SizeSource::declared(), None)
    }

    pub(crate) fn new(sizes: SizeSource, recorder: Option<&'c dyn Recorder>) -> Self {
        let usable_size = size_query();
        let queries_own_blocks = match sizes {
            SizeSource::Allocator(usable_size) => Some(usable_size),
            SizeSource::Table(_) => recorder.is_none().then_some(usable_size),
            SizeSource::Layout | SizeSource::Function(_) => None,
        };
        let has_gaps = match sizes {
            SizeSource::Table(tracker) => recorder.is_some() && !tracker.tracks_every_block(),
            _ => false,
        };
        let classes = match sizes {
            SizeSource::Allocator(_) | SizeSource::Table(_) => size_classes(),
            SizeSource::Layout | SizeSource::Function(_) => &SizeClasses::NONE,
        };
        let quick_claims = recorder.and_then(Recorder::quick_claims);
        let claiming = if has_gaps && has_size_words() {
            Claiming::BySizeWord
        } else if has_gaps {
            Claiming::ByQuery
        } else if quick_claims.is_some() && classes.tell_sizes() {
            Claiming::ByClass
        } else {
            Claiming::Later
        };
        Collection {
            sizes,
            recorder,
            usable_size,
            queries_own_blocks,
            claiming,
            claim_own_block: claiming.of_own_block(),
            quick_claims,
            classes,
            reads_headers: reads_headers(sizes, recorder.is_some()),
            known_blocks: recorder.and_then(KnownBlocks::of),
            visited_fields: recorder.map(Recorder::visited_fields),
            read_fields: recorder.map(Recorder::read_fields),
            visited: RefCell::default(),
            run: Cell::new(0),
            reporter: Cell::new(0),
            #[cfg(feature = "std")]
            locks: LockTime::default(),
        }
    }

    /// Returns the recorder, if it must be notified of a visit to this field.
    #[inline(always)]
    pub(super) fn recorder_for(&self, field: &'static Field) -> Option<&'c dyn Recorder> {
        if self.visited_fields?.contains(field) { None } else { self.recorder }
    }

    /// Returns the recorder, if it needs the value of this skipped field.
    #[inline(always)]
    pub(super) fn recorder_for_skipped(&self, field: &'static Field) -> Option<&'c dyn Recorder> {
        if self.read_fields?.contains(field) { None } else { self.recorder }
    }

    /// Returns whether this is a collection whose table has gaps.
    #[inline(always)]
    pub(super) fn has_gaps(&self) -> bool {
        matches!(self.claiming, Claiming::ByQuery | Claiming::BySizeWord)
    }

    /// Returns whether claims are made at once and checked later.
    #[inline(always)]
    pub(super) fn is_checked(&self) -> bool {
        self.claiming == Claiming::ByClass
    }

    /// Returns whether claims do not wait.
    #[inline(always)]
    pub(super) fn claims_at_once(&self) -> bool {
        self.claiming != Claiming::Later
    }

    /// Returns whether blocks of a tracker are claimed.
    pub(super) fn has_claims(&self) -> bool {
        self.recorder.is_some() && matches!(self.sizes, SizeSource::Table(_))
    }

    /// Marks a shared block as visited. Returns whether this is the first visit.
    pub(super) fn visit(&self, address: usize) -> bool {
        let mut first = false;
        self.visited.borrow_mut().entry(address).or_insert_with(|| {
            first = true;
            self.run.get()
        });
        first
    }
}

#[cfg(feature = "std")]
impl<'c> Collection<'c> {
    /// Begins the next reporter.
    pub(crate) fn begin_reporter(&self) {
        self.run.set(self.run.get() + 1);
    }

    /// Attributes further claims to this reporter.
    pub(crate) fn set_claimant(&self, reporter: u32) {
        self.reporter.set(reporter);
        if let Some(quick) = &self.quick_claims {
            quick.claimants.begin(reporter);
        }
    }

    /// Removes the visits of the reporter that failed, so that others count its shared blocks.
    pub(crate) fn remove_visits_of_reporter(&self) {
        let failed = self.run.get();
        self.visited.borrow_mut().retain(|_, run| *run != failed);
    }

    /// Sets the time for which all measurements together wait for locks.
    pub(crate) fn wait_for_locks(mut self, time: Duration) -> Self {
        self.locks = LockTime::of(time);
        self
    }

    /// Returns whether sizes come from an allocator or a tracker.
    pub(crate) fn has_usable_sizes(&self) -> bool {
        !matches!(self.sizes, SizeSource::Layout)
    }

    /// Returns the recorder of claims.
    pub(crate) fn recorder(&self) -> Option<&'c dyn Recorder> {
        self.recorder
    }
}

impl core::fmt::Debug for Collection<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Collection").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

/// Returns the size query of the program's allocator.
fn size_query() -> UsableSizeFn {
    #[cfg(feature = "std")]
    return crate::allocator::declaration::size_query();
    // Without std there is no tracker, and nothing is queried in its place.
    #[cfg(not(feature = "std"))]
    |_, layout| layout.size()
}

/// Returns whether the sizes of most blocks can be read from the words before them.
fn has_size_words() -> bool {
    #[cfg(feature = "std")]
    return crate::allocator::declaration::has_size_words();
    #[cfg(not(feature = "std"))]
    false
}

/// Returns whether the size query of the program's allocator reads the word before a block.
fn query_reads_header() -> bool {
    #[cfg(feature = "std")]
    return crate::allocator::declaration::reads_header();
    #[cfg(not(feature = "std"))]
    false
}

/// Returns the size classes of the program's allocator.
fn size_classes() -> &'static SizeClasses {
    #[cfg(feature = "std")]
    return crate::allocator::declaration::size_classes();
    #[cfg(not(feature = "std"))]
    &SizeClasses::NONE
}

/// Returns whether this source reads the words before blocks.
fn reads_headers(sizes: SizeSource, has_claims: bool) -> bool {
    match sizes {
        SizeSource::Layout => false,
        SizeSource::Function(_) => true,
        SizeSource::Allocator(_) => query_reads_header(),
        // The sizes of claimed blocks are the tracker's, if it has these blocks.
        SizeSource::Table(tracker) => {
            !(has_claims && tracker.tracks_every_block()) && query_reads_header()
        }
    }
}

/// A hasher that spreads addresses, whose low bits are all alike, over a table.
#[cfg(feature = "std")]
#[derive(Default)]
struct AddressHasher(u64);

#[cfg(feature = "std")]
impl core::hash::Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        // Fibonacci hashing. The rotation moves the well mixed bits to where the table looks.
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
