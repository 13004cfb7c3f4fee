//! What a tracking allocator can be asked. Implemented by `dmd`; measuring asks through it and need not know more.

#[cfg(feature = "std")]
use alloc::{boxed::Box, string::String};

use core::cell::Cell;

use crate::field::Field;
#[cfg(feature = "std")]
use crate::findings::Recording;

/// Knows every live block of the program. Not part of the public interface: made for the crate `dmd`.
pub trait Tracker: Sync {
    /// Whether the table of blocks is kept at this moment.
    fn is_awake(&self) -> bool;

    /// Whether every live block is in the table: not so where tracking began late, was off for a time, or takes samples.
    fn knows_all(&self) -> bool;

    /// What it tracks at this moment, in words: `live, full stacks`.
    #[cfg(feature = "std")]
    fn state(&self) -> String;

    /// What lies at the claimed address, by the table alone: the memory is never touched.
    fn look_up(&self, claim: Claim) -> Found;

    /// The usable bytes of the block that starts here, if it was made with this size. Where it is not as simple as that, `None`:
    /// then [`look_up`](Self::look_up) says what there is.
    fn whole(&self, start: usize, size: usize) -> Option<usize>;

    /// Where the table keeps what it knows of a block at this address, to be fetched ahead; anywhere, if nothing is kept.
    fn kept_at(&self, address: usize) -> *const u8;

    /// Begins a collection: from here on, new blocks are told from old ones. Collections never overlap.
    #[cfg(feature = "std")]
    fn begin(&self) -> Box<dyn Recording>;

    /// Whatever the tracker uses for itself, as (path, bytes, description); none of it is on the program's heap.
    fn own_memory(&self, report: &mut dyn FnMut(&'static str, usize, &'static str));
}

/// A statement about a block, made by whoever measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The address that was given.
    pub address: usize,
    /// The bytes that were asked of the allocator, where the claimant knows.
    pub size: Option<usize>,
    /// Where in the block the address lies.
    pub place: Place,
}

/// Where in its block a claimed address lies, as the claimant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the first byte; anything else is a defect of the reporter.
    Start,
    /// Anywhere; not being in a block at all is no defect.
    Inside,
}

/// What the tracker knows of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The bytes to report.
    pub bytes: usize,
    /// The block that holds the address.
    pub block: Option<Block>,
    /// What is wrong with the claim.
    pub wrong: Option<Wrong>,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub start: usize,
    /// The bytes that were asked for.
    pub requested: usize,
    /// The bytes that the allocator gave.
    pub usable: usize,
    /// Tells it from a later block at the same address.
    pub identity: u64,
}

/// A defect of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wrong {
    /// No block of the program's allocator is there.
    NonHeap,
    /// The address is inside a block, not at its start.
    Interior,
    /// The block has another size than was claimed.
    Partial,
    /// Nothing, as far as can be told: the tracker does not know all blocks, and not this one.
    Untracked,
}

/// Hears every claim of one collection, in its order.
pub trait Recorder {
    /// A block was claimed, and this was found.
    fn claimed(&self, claim: Claim, found: Found, who: Who);

    /// The same for a block that starts here and was made with this size, looked up as well: the usable bytes. Where it is not as
    /// simple as that, nothing is heard, and `None` says so.
    fn claimed_whole(&self, start: usize, size: usize, who: Who) -> Option<usize> {
        let _ = (start, size, who);
        None
    }

    /// A field is about to be measured, or skipped; it lies at this address and has this size.
    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        let _ = (field, address, size);
    }

    /// Where it is remembered which fields it has heard of, if it need not hear of each again: of one that is skipped it always does.
    fn heard_of(&self) -> Option<&HeardOf> {
        None
    }

    /// A place behind all claims that were heard so far.
    fn position(&self) -> usize;

    /// Forgets the claims from this position on: the reporter that made them failed.
    fn roll_back(&self, position: usize);
}

/// Fields that were just visited, each in the place that its address says.
#[derive(Debug)]
pub struct HeardOf([Cell<usize>; 64]);

impl HeardOf {
    /// None yet.
    #[must_use]
    pub fn nothing() -> Self {
        HeardOf([const { Cell::new(0) }; 64])
    }

    /// Whether another field was the last in its place.
    #[inline]
    pub(crate) fn is_news(&self, field: &'static Field) -> bool {
        let address = core::ptr::from_ref(field).addr();
        let place = &self.0[address / align_of::<Field>() % self.0.len()];
        place.replace(address) != address
    }
}

/// Who made a claim.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// The number of the reporter in this collection.
    pub reporter: u32,
    /// The nearest field of a derived type that led to the block.
    pub field: Option<&'static Field>,
}
