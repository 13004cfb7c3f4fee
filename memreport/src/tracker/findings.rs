//! Defines a collection from the tracker's side: its recording, its end, and the findings.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use std::io;
use std::path::Path;

use super::attribution::Attributed;
use super::recorder::Recorder;

/// The values that a tracker receives when a collection ends.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'c> {
    /// The paths of the reporters, in the order of the numbers that claims refer to, from 1.
    pub reporters: &'c [String],
    /// Bytes reported as heap that were not measured block by block.
    pub unmeasured: i64,
    /// The moment of the program at which the collection ran, for people: "asked by the program".
    pub moment: &'c str,
}

/// One collection, from its beginning to its end.
pub trait Recording {
    /// Returns the recorder of this collection's claims.
    fn recorder(&self) -> &dyn Recorder;

    /// Merges the claims with the live blocks.
    fn finish(self: Box<Self>, ending: Ending<'_>) -> Box<dyn Findings>;
}

/// The result of a tracker for one collection.
pub trait Findings: Any + Send {
    /// Returns the usable bytes in all blocks that lived before the collection began and are still
    /// live.
    fn heap_allocated(&self) -> usize;

    /// Reports blocks that no reporter claims, and that the tracker attributes.
    fn attributed(&self, report: &mut dyn FnMut(Attributed<'_>));

    /// Reports why blocks could not be attributed, in sentences.
    fn attribution_notes(&self, note: &mut dyn FnMut(&str));

    /// Writes the findings file.
    ///
    /// # Errors
    ///
    /// Returns the errors of `out`.
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()>;

    /// Writes the findings to a file beside the report file `report`.
    ///
    /// # Errors
    ///
    /// Returns the errors of creating or writing the file.
    fn save_beside(&self, report: &Path) -> io::Result<()>;

    /// Notes that the report file at this path is complete.
    fn saved(&self, report: &Path);

    /// Returns the findings as `Any`, so that the tracker's crate can downcast them.
    fn as_any(&self) -> &dyn Any;
}
