//! A dump as the files of viewers that people have already: one file for each format.
//!
//! Everything here is pure: a [`Heap`] in, bytes out. Totals are the dump's in every format; of a sample they are the same
//! estimate everywhere.
//!
//! # Examples
//!
//! ```
//! use dmd::export::{self, Format, Heap, HeapOptions};
//!
//! let dump = dmd::dump::read::read_slice(
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

pub use crate::heap::{Frames, Heap, HeapOptions};

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
    /// Massif's file: `ms_print`. Takes several dumps.
    Massif,
    /// Chrome's MemoryInfra trace: Catapult's trace viewer. Takes several dumps.
    MemoryInfra,
    /// The Firefox Profiler's processed profile.
    FirefoxProfiler,
}

impl Format {
    /// Whether a file can hold more than one dump.
    #[must_use]
    pub fn takes_several(self) -> bool {
        matches!(self, Format::Massif | Format::MemoryInfra)
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
