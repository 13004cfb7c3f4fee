//! Exports of dumps and recordings to the file formats of other viewers: a module for each format.
//!
//! Everything here is pure: a [`Heap`] or a [`History`] in, bytes out. Totals are the dump's in
//! every format. Those of a sample are the same estimate in every format.
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
use crate::heap::history::HistoryError;
pub use crate::heap::{Frames, Heap, HeapOptions, StackKind};

/// Defines [`Format`] from one list: the variant, the word of `--to`, and the viewers.
macro_rules! formats {
    ($(
        $(#[doc = $doc:literal])+ $(#[cfg($cfg:meta)])?
        $variant:ident $name:literal $viewers:literal,
    )+) => {
        /// A format that a heap can be exported to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[doc = $doc])+ $(#[cfg($cfg)])? $variant,)+
        }

        impl Format {
            /// All formats of this build.
            pub const ALL: &[Format] = &[$($(#[cfg($cfg)])? Format::$variant),+];

            /// Returns the name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? Format::$variant => $name,)+
                }
            }

            /// Returns the viewers that open a file of this format.
            #[must_use]
            pub fn viewers(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? Format::$variant => $viewers,)+
                }
            }
        }
    };
}

formats! {
    /// Gzipped profile.proto: `go tool pprof`, and stores of profiles.
    Pprof "pprof" "`go tool pprof`, speedscope, profile stores; gzipped",
    /// DHAT, version 2: valgrind's `dh_view.html`, the Firefox Profiler.
    Dhat "dhat" "valgrind's `dh_view.html`, the Firefox Profiler",
    /// Folded stacks: flame graphs, speedscope.
    Folded "folded" "Folded stacks: flame graph scripts, speedscope",
    /// A flame graph for a browser.
    #[cfg(feature = "svg")]
    Svg "svg" "A flame graph for any browser",
    /// Speedscope's own file.
    Speedscope "speedscope" "speedscope",
    /// Massif's file: `ms_print`. Takes several dumps, and shows time.
    Massif "massif" "valgrind's `ms_print`",
    /// Chrome's MemoryInfra trace: Catapult's trace viewer. Takes several dumps.
    MemoryInfra "memory-infra" "Catapult's trace viewer (`chrome://tracing`)",
    /// The Firefox Profiler's processed profile. Shows time, and takes several recordings.
    FirefoxProfiler "firefox-profiler" "The Firefox Profiler",
}

impl Format {
    /// Returns whether a file can contain several dumps.
    #[must_use]
    pub fn takes_several(self) -> bool {
        matches!(self, Format::Massif | Format::MemoryInfra)
    }

    /// Returns whether the format shows a heap over time: it takes whole recordings then.
    #[must_use]
    pub fn has_time(self) -> bool {
        matches!(self, Format::Massif | Format::FirefoxProfiler)
    }

    /// Returns whether a file over time can contain several processes.
    #[must_use]
    pub fn takes_several_recordings(self) -> bool {
        self == Format::FirefoxProfiler
    }
}

/// Writes heaps in a format. Writes only the first one, where a file contains one dump.
///
/// # Errors
///
/// Returns an error if writing fails, or if there is no heap to write.
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

/// Writes recordings over time. Writes only the first one, where a file contains one process.
///
/// A format without time gets the heap at the end.
///
/// # Errors
///
/// Returns an error if writing fails, or if there is no recording to write. If the recording cannot
/// be read, or the options keep one class of blocks, since a recording contains no reports, the
/// error contains a [`HistoryError`].
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

/// Writes the heap of a recording at a moment, in microseconds since its beginning.
///
/// Formats that contain freed blocks get those as well.
///
/// # Errors
///
/// The same as those of [`write_histories`].
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
    write(format, &[heap.map_err(unreadable)?], out)
}

/// Marks an error as one of a recording, not of writing: its source is a [`HistoryError`].
fn unreadable(error: impl Into<HistoryError>) -> io::Error {
    io::Error::other(error.into())
}
