//! Reads dumps of format 5, Firefox's or ours, plain or gzipped.
//!
//! A dump names stacks and frames by short keys. Here each key becomes an index into a table. If a
//! stack or frame is missing, [`Dump::notes`] gets a sentence about it, and the rest of the dump is
//! usable.

pub(crate) mod block;
mod error;
mod extension;
mod holder;
pub(crate) mod input;
mod keys;
mod model;
pub(crate) mod scan;
mod stack_frame;
mod unpack;
mod wire;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use block::list::{BlockList, Blocks};
pub use block::{Block, BlockKind, HolderId, TraceId};
pub use error::ReadError;
pub use extension::{
    Estimate, Extension, Module, ReportSite, Sampled, Scope, SpanIds, Sum, Thread, Wrong, WrongKind,
};
pub use holder::{FieldPlace, Holder, StaticPlace, StaticWord};
pub use model::{Dump, Frame, FrameId, Invocation, Mode, Symbol};
pub(crate) use model::{MOST_FRAMES, cut_stacks_note};
use scan::block_words::FileWords;
pub(crate) use scan::block_words::InOrder;
pub use scan::contents::Contents;
pub(crate) use scan::contents::ContentsTable;
use scan::kept::Kept;
use scan::scanned;
pub use stack_frame::{FrameRegister, StackFrame};
pub use unpack::DEFAULT_LIMIT;
pub(crate) use unpack::{Unpacked, Unpacker};

/// Reads the dump in a file.
///
/// # Errors
///
/// If the file cannot be read, or if it is not a dump. The message does not contain the path.
pub fn read_file(path: &Path) -> Result<Dump, ReadError> {
    let file = File::open(path).map_err(ReadError::Io)?;
    let input = file.try_clone().map_err(ReadError::Io)?;
    read_with_file(input, file, DEFAULT_LIMIT)
}

/// Reads a dump whose JSON has at most `limit` bytes when unpacked. The blocks of a scan follow the
/// JSON; they are read one after the other, as many as there are.
///
/// # Errors
///
/// If the input cannot be read, is not a dump, or is larger than `limit`.
pub fn read(input: impl Read, limit: u64) -> Result<Dump, ReadError> {
    let mut input = Unpacked::open(input)?;
    let json = input.json(limit)?;
    wire::parse(&json, &mut input, Kept::InMemory)
}

/// Reads a dump as [`read`] does, from all bytes of a file. The words of a scan's blocks, which are
/// most of it, stay in the file and are read when they are wanted; but not if it is compressed, or
/// cannot be read twice, as a pipe. A file that is written anew meanwhile has other words; one that
/// becomes shorter has none, as [`Dump::lost_words`] tells.
///
/// # Errors
///
/// The same as those of [`read`].
pub fn read_with_file(input: impl Read, file: File, limit: u64) -> Result<Dump, ReadError> {
    let mut input = Unpacked::open(input)?;
    let json = input.json(limit)?;
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    let kept = match input {
        Unpacked::Plain(_) if is_file => Kept::WordsInFile(FileWords::new(file)),
        _ => Kept::InMemory,
    };
    wire::parse(&json, &mut input, kept)
}

/// Reads a dump as [`read`] does, of a file that is compressed or cannot be read twice, as a pipe.
/// Where a scan's blocks have more than 64 MiB of words, these are copied to the file that `copy`
/// makes: an empty one, to be read and written. They are read from there when they are wanted. If
/// it makes none, they stay in memory.
///
/// # Errors
///
/// The same as those of [`read`], and [`ReadError::Copy`] if the file cannot be written, as on a
/// full disk.
pub fn read_with_copy(
    input: impl Read,
    copy: &mut dyn FnMut() -> io::Result<File>,
    limit: u64,
) -> Result<Dump, ReadError> {
    let mut input = Unpacked::open(input)?;
    let json = input.json(limit)?;
    wire::parse(&json, &mut input, Kept::WordsInCopy(copy))
}

/// Reads a dump as [`read`] does, for questions about amounts alone: blocks of a scan that have the
/// same sizes and the same kind become one entry, without address and contents. So memory grows
/// with the number of different blocks, and a [`Heap`](crate::heap::Heap) of the dump is the same.
///
/// # Errors
///
/// The same as those of [`read`].
pub fn read_amounts(input: impl Read, limit: u64) -> Result<Dump, ReadError> {
    let mut input = Unpacked::open(input)?;
    let json = input.json(limit)?;
    wire::parse(&json, &mut input, Kept::Sums)
}

/// Reads a dump from its JSON text.
///
/// # Errors
///
/// If the text is not a dump.
///
/// # Examples
///
/// ```
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
///          "blockList": [{"req": 100, "slop": 12, "alloc": "A"}],
///          "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: main (main.rs:1)"}}"##,
/// )?;
/// assert_eq!(dump.blocks.at(0).usable(), 112);
/// # Ok::<(), memreport_analysis::read::ReadError>(())
/// ```
pub fn read_slice(json: &[u8]) -> Result<Dump, ReadError> {
    let (json, blocks) = scanned::split(json);
    wire::parse(json, &mut blocks.unwrap_or_default(), Kept::InMemory)
}

#[cfg(test)]
mod tests;
