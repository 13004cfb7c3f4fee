//! A dump, or a recording, as the files of viewers that people have already: one file for each format.
//!
//! Everything here is pure: a [`Heap`] or a [`History`] in, bytes out. Totals are the dump's in every format; of a sample they are
//! the same estimate everywhere.
//!
//! # Examples
//!
//! ```
//! use memreport_analysis::export::{self, Format, Heap, HeapOptions};
//!
//! let dump = memreport_analysis::read::read_slice(
//!     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
//!          "blockList": [{"req": 100, "slop": 12, "alloc": "A"}],
//!          "traceTable": {"A": ["B", "C"]},
//!          "frameTable": {"B": "#00: load (load.rs:7)", "C": "#00: main (main.rs:1)"}}"##,
//! )?;
//! let heap = Heap::new(&dump, &HeapOptions::default())?;
//! let mut folded = Vec::new();
//! export::write(Format::Folded, &[heap], &mut folded)?;
//! assert_eq!(folded, b"main;load 112\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod pprof;
pub mod dhat;
pub mod folded;
#[cfg(feature = "svg")]
pub mod svg;
pub mod speedscope;
pub mod massif;
pub mod memory_infra;
pub mod firefox;

#[cfg(test)]
mod tests;

use std::io;

pub use crate::heap::history::History;
pub use crate::heap::{Frames, Heap, HeapOptions, StackKind};

/// A format that a heap can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Gzipped profile.proto: `go tool pprof`, and stores of profiles.
    Pprof,
    /// DHAT, version 2: valgrind's `dh_view.html`, the Firefox Profiler.
    Dhat,
    /// Folded stacks: flame graphs, speedscope.
    Folded,
    /// A flame graph for a browser.
    #[cfg(feature = "svg")]
    Svg,
    /// Speedscope's own file.
    Speedscope,
    /// Massif's file: `ms_print`. Takes several dumps, and has time.
    Massif,
    /// Chrome's MemoryInfra trace: Catapult's trace viewer. Takes several dumps.
    MemoryInfra,
    /// The Firefox Profiler's processed profile. Has time, and takes several recordings.
    FirefoxProfiler,
}

impl Format {
    /// Whether a file can hold more than one dump.
    #[must_use]
    pub fn takes_several(self) -> bool {
        matches!(self, Format::Massif | Format::MemoryInfra)
    }

    /// Whether it shows the heap over time, for which it takes recordings whole.
    #[must_use]
    pub fn has_time(self) -> bool {
        matches!(self, Format::Massif | Format::FirefoxProfiler)
    }

    /// Whether a file in which time passes can be of several processes.
    #[must_use]
    pub fn takes_several_recordings(self) -> bool {
        self == Format::FirefoxProfiler
    }
}

/// Writes heaps in a format: the first one only, where the format has no room for several.
///
/// # Errors
///
/// If writing fails, or there is no heap to write.
pub fn write(format: Format, heaps: &[Heap], out: &mut dyn io::Write) -> io::Result<()> {
    let Some(first) = heaps.first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no dump was given"));
    };
    match format {
        Format::Pprof => pprof::write(first, out),
        Format::Dhat => dhat::write(first, out),
        Format::Folded => folded::write(first, out),
        #[cfg(feature = "svg")]
        Format::Svg => svg::write(first, out),
        Format::Speedscope => speedscope::write(first, out),
        Format::Massif => massif::write(heaps, out),
        Format::MemoryInfra => memory_infra::write(heaps, out),
        Format::FirefoxProfiler => firefox::write(first, out),
    }
}

/// Writes recordings over time in a format that has it: the first one only, where the format has no room for several. In a format
/// without time, it is the heap at the end.
///
/// # Errors
///
/// If writing fails, there is no recording to write, or blocks of one class are asked for, which a recording does not know.
pub fn write_histories(
    format: Format,
    histories: &[History],
    options: &HeapOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Some(first) = histories.first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no recording was given"));
    };
    match format {
        Format::Massif => massif::write_history(first, options, out),
        Format::FirefoxProfiler => firefox::timeline::write(histories, options, out),
        _ => write_moment(format, first, first.recording().length, options, out),
    }
}

/// Writes the heap of a recording at a moment, in microseconds since its beginning. Formats that have it get what was allocated and
/// given back by then as well.
///
/// # Errors
///
/// If writing fails, and if blocks of one class are asked for, which a recording does not know.
pub fn write_moment(
    format: Format,
    history: &History,
    at: u64,
    options: &HeapOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let heap = match format {
        Format::Dhat => return dhat::write_history(history, at, options, out),
        Format::Pprof | Format::FirefoxProfiler => history.heap_and_allocated(at, options),
        _ => history.heap(at, options),
    };
    write(format, &[heap.map_err(io::Error::other)?], out)
}
