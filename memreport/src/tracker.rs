//! What a tracking allocator can be asked. Implemented by `dmd`; measuring asks through it and need not know more.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use std::io;
use std::path::Path;

use crate::field::Field;

/// Knows every live block of the program. Not part of the public interface: made for the crate `dmd`.
pub trait Tracker: Sync {
    /// Whether the table of blocks is kept at this moment.
    fn is_awake(&self) -> bool;

    /// Whether every live block is in the table: not so where tracking began late, was off for a time, or takes samples.
    fn knows_all(&self) -> bool;

    /// What it tracks at this moment, in words: `live, full stacks`.
    fn state(&self) -> String;

    /// What lies at the claimed address, by the table alone: the memory is never touched.
    fn look_up(&self, claim: Claim) -> Found;

    /// Begins a collection: from here on, new blocks are told from old ones. Collections never overlap.
    fn begin(&self) -> Box<dyn Recording>;

    /// Whatever the tracker uses for itself, as (path, bytes, description); none of it is on the program's heap.
    fn own_memory(&self, report: &mut dyn FnMut(&'static str, usize, &'static str));
}

/// What the end of a collection is told.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'c> {
    /// The path of each reporter by the number that claims name it by.
    pub reporters: &'c [String],
    /// Bytes that were reported as heap without being measured block by block.
    pub unmeasured: i64,
    /// At which moment of the program this is, for a person: "asked by the program".
    pub moment: &'c str,
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

    /// A field is about to be measured, or skipped; it lies at this address and has this size.
    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        let _ = (field, address, size);
    }

    /// How many claims were heard so far.
    fn position(&self) -> usize;

    /// Forgets the claims from this position on: the reporter that made them failed.
    fn roll_back(&self, position: usize);
}

/// One collection, from its beginning to its end.
pub trait Recording {
    /// Hears the claims.
    fn recorder(&self) -> &dyn Recorder;

    /// Merges what was claimed with the blocks that live.
    fn finish(self: Box<Self>, ending: Ending<'_>) -> Box<dyn Findings>;
}

/// Who made a claim.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// The number of the reporter in this collection.
    pub reporter: u32,
    /// The nearest field of a derived type that led to the block.
    pub field: Option<&'static Field>,
}

/// What a tracker made of one collection.
pub trait Findings: Any + Send {
    /// The bytes in all blocks that lived before the collection began and live still, by the allocator's counters.
    fn heap_allocated(&self) -> usize;

    /// Writes the findings' file.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()>;

    /// Writes the findings beside the report file at `report`.
    ///
    /// # Errors
    ///
    /// Those of writing the file.
    fn save_beside(&self, report: &Path) -> io::Result<()>;

    /// The report file at this path is complete now.
    fn saved(&self, report: &Path);

    /// For the crate that made it, to get its own type back.
    fn as_any(&self) -> &dyn Any;
}

/// Stands for the tracker itself where a reporter's number is asked for. No reporter gets it.
pub const OWN: u32 = 0xffff;

/// Runs `work` with the blocks it makes marked as the tracker's own, which are in no sum: what it finds and writes must not
/// look like the program's when another collection begins meanwhile.
pub fn as_own<R>(work: impl FnOnce() -> R) -> R {
    on_alloc::marked(OWN, work)
}

/// How an allocating wrapper names itself while it allocates: blocks born meanwhile count as reported by it.
pub(crate) mod on_alloc {
    use core::cell::Cell;

    std::thread_local! {
        static REPORTER: Cell<u32> = const { Cell::new(0) };
    }

    /// Runs `allocate` with the blocks it makes marked as this reporter's; 0 is nobody.
    pub(crate) fn marked<R>(reporter: u32, allocate: impl FnOnce() -> R) -> R {
        let before = REPORTER.try_with(|current| current.replace(reporter)).unwrap_or(0);
        let result = allocate();
        let _ = REPORTER.try_with(|current| current.set(before));
        result
    }

    /// The reporter in whose name this thread allocates now; 0 is nobody.
    #[inline]
    pub(crate) fn current() -> u32 {
        REPORTER.try_with(Cell::get).unwrap_or(0)
    }
}

/// The number of the reporter in whose name this thread allocates now; 0 is nobody.
#[inline]
#[must_use]
pub fn current_on_alloc() -> u32 {
    on_alloc::current()
}
