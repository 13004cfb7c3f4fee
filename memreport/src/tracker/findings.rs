//! One collection as a tracker sees it: from its beginning to what it found.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use std::io;
use std::path::Path;

use super::recorder::Recorder;

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

/// One collection, from its beginning to its end.
pub trait Recording {
    /// Hears the claims.
    fn recorder(&self) -> &dyn Recorder;

    /// Merges what was claimed with the blocks that live.
    fn finish(self: Box<Self>, ending: Ending<'_>) -> Box<dyn Findings>;
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
