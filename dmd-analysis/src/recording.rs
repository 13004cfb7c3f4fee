//! Recordings: which blocks were allocated when, by which stacks, and how long they lived.
//!
//! # Examples
//!
//! ```
//! use memreport_analysis::recording::{self, Which};
//!
//! let lines = br#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null}
//! ["thread",1,70,"main"]
//! ["site",1,1,["1000"],0]
//! ["+",10,1,4096,100,112]
//! ["+",10,1,8192,50,56]
//! ["-",5,4096,1]
//! {"end":true,"events":3,"lost":0}
//! "#;
//! let recording = recording::read(&lines[..])?;
//! assert_eq!(recording.sum(Which::Allocated)?.bytes, 168.0);
//! assert_eq!(recording.sum(Which::Retained)?.bytes, 56.0);
//! assert_eq!(recording.sum(Which::Temporary)?.bytes, 112.0);
//! # Ok::<(), recording::RecordingError>(())
//! ```

mod source;
mod events;
mod packed;
mod read;
mod peak;
mod blocks;
mod summary;
mod moment;
mod dump;
mod site_dump;
mod error;

pub use error::RecordingError;
pub use moment::{Moment, MomentError, NoMoment};
pub use read::{is_recording, read, read_with_file};
pub use summary::{Estimate, Lifetime, Peak, Sums};

use std::collections::BTreeMap;
use std::ops::Range;

/// A recording of a program: its sums over time, its sites and others. Its blocks are read from the
/// file when they are wanted, by [`each_block`](Self::each_block).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recording {
    /// The path of the program.
    pub program: Option<String>,
    /// The process id.
    pub pid: u32,
    /// The time of its beginning, in milliseconds since 1970.
    pub started_ms: u64,
    /// The bytes between two samples on average, or `None` if every block was recorded.
    pub sample_bytes: Option<u64>,
    /// The number of blocks that were recorded.
    pub block_count: u64,
    /// The exact sums over time.
    pub timeline: Vec<Point>,
    /// The marks that the program has set.
    pub marks: Vec<Mark>,
    /// The sites that allocated blocks, and freed them if frees have stacks, by number.
    pub sites: BTreeMap<u32, Site>,
    /// The scopes that the program has entered, from number 1.
    pub scopes: Vec<Scope>,
    /// The spans of traces that scopes are linked to.
    pub spans: Vec<ScopeSpan>,
    /// The threads, by number.
    pub threads: BTreeMap<u32, Thread>,
    /// The executables and libraries that were loaded.
    pub modules: Vec<Module>,
    /// Its length in microseconds.
    pub length: u64,
    /// True if the program did not wait for the recording, so that it could lose events.
    pub is_lossy: bool,
    /// True if frees have stacks, by request.
    pub has_free_stacks: bool,
    /// The number of allocations and frees that are missing because they came faster than they
    /// could be written.
    pub lost: u64,
    /// True if its end was written, and nothing is missing. A killed program leaves a recording
    /// without an end.
    pub is_whole: bool,
    /// The number of sites with stacks whose outermost frames are left out.
    cut_stacks: usize,
    /// The peak to the event, if every block of the program was recorded.
    exact_peak: Option<peak::ExactPeak>,
    /// All of its bytes.
    source: source::Source,
}

impl Recording {
    /// Returns a sentence about what is missing, or `None` if nothing is.
    #[must_use]
    pub fn incomplete(&self) -> Option<String> {
        if self.is_whole {
            return None;
        }
        Some(match self.lost {
            0 => "The recording is incomplete: it ends before the program did, which was killed, \
                  could not write the file or is still running."
                .to_owned(),
            lost => format!(
                "The recording is incomplete: {lost} allocations and frees came faster than they \
                 could be written, and are missing. Sums of blocks are wrong."
            ),
        })
    }
}

/// A recorded block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its place among all blocks, in the order of their allocation, from 0.
    pub number: u64,
    /// The number of the site that allocated it.
    pub site: u32,
    /// The requested bytes.
    pub requested: u64,
    /// The usable bytes.
    pub usable: u64,
    /// The number of blocks that it represents: 1 if every block was recorded.
    pub weight: f64,
    /// The time of its allocation, in microseconds since the beginning.
    pub allocated_at: u64,
    /// The time, thread and site of its free, or `None` if it was alive at the end.
    pub freed: Option<Freed>,
}

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The time, in microseconds since the beginning.
    pub time: u64,
    /// The number of the thread; 0 if it is not known.
    pub thread: u32,
    /// The number of the site that freed it; 0 if it is not known.
    pub site: u32,
    /// The number of blocks that had been allocated before.
    pub blocks: u64,
}

impl Block {
    /// Returns the bytes that it represents, rounded to whole bytes so that sums agree everywhere.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    pub fn bytes(&self) -> f64 {
        (self.usable as f64 * self.weight).round()
    }

    /// Returns the requested part of those bytes.
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    pub(crate) fn requested_bytes(&self) -> f64 {
        (self.requested as f64 * self.weight).round()
    }

    /// Returns whether it is alive at this time, in microseconds since the beginning.
    #[must_use]
    pub fn lives_at(&self, time: u64) -> bool {
        self.allocated_at <= time && self.freed.is_none_or(|freed| freed.time > time)
    }

    /// Returns its lifetime in microseconds, or `None` if it was not freed.
    #[must_use]
    pub fn lifetime(&self) -> Option<u64> {
        self.freed.map(|freed| freed.time.saturating_sub(self.allocated_at))
    }
}

/// A mark that the program has set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The time, in microseconds since the beginning.
    pub time: u64,
    /// The text of the mark.
    pub text: String,
    /// The cycle of work on memory that ended at this time.
    pub cycle: Option<Cycle>,
}

/// A cycle of work on the program's memory, such as a garbage collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// The reason for the cycle.
    pub reason: String,
    /// The reason why it was done all at once, if it was.
    pub nonincremental_reason: Option<String>,
    /// The slices of the work, in microseconds since the beginning.
    pub slices: Vec<Range<u64>>,
}

/// A scope of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The number of the scope around it; 0 if there is none.
    pub outer: u16,
    /// Its name.
    pub name: String,
}

/// The span of a trace that a scope is linked to. Identifiers are in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSpan {
    /// The number of the scope.
    pub scope: u16,
    /// The identifier of the trace.
    pub trace: String,
    /// The identifier of the span.
    pub span: String,
}

/// An allocation site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The number of the thread.
    pub thread: u32,
    /// The return addresses, innermost first.
    pub stack: Vec<u64>,
    /// The number of the scope; 0 if there is none.
    pub scope: u16,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The number of the kernel.
    pub tid: u32,
    /// Its name at its first allocation.
    pub name: Option<String>,
}

/// An executable or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Its build id, in hexadecimal.
    pub build_id: Option<String>,
    /// The load bias: the difference between addresses in memory and in the file.
    pub base: u64,
    /// The addresses of its segments in memory.
    pub segments: Vec<Range<u64>>,
}

/// The exact sums at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Point {
    /// The time, in microseconds since the beginning.
    pub time: u64,
    /// Bytes allocated since the program's start.
    pub allocated_bytes: u64,
    /// Blocks allocated since then.
    pub allocations: u64,
    /// Bytes freed since then.
    pub freed_bytes: u64,
    /// Blocks freed since then.
    pub frees: u64,
    /// Bytes in physical memory.
    pub resident: u64,
}

impl Point {
    /// Returns the bytes in live blocks.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.allocated_bytes.saturating_sub(self.freed_bytes)
    }
}

/// A choice of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which {
    /// All allocated blocks.
    Allocated,
    /// The blocks that were alive at the end.
    Retained,
    /// The blocks that were alive at the peak.
    AtPeak,
    /// The blocks that were freed within [`TEMPORARY`].
    Temporary,
    /// The blocks that were freed, by the sites that freed them.
    Freed,
}

/// The lifetime in microseconds below which a block is temporary.
pub const TEMPORARY: u64 = 1000;
