//! A recording, read: what was allocated when, by whom, and how long it lived.
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
//! assert_eq!(recording.sum(Which::Allocated).bytes, 168.0);
//! assert_eq!(recording.sum(Which::Retained).bytes, 56.0);
//! assert_eq!(recording.sum(Which::Temporary).bytes, 112.0);
//! # Ok::<(), recording::RecordingError>(())
//! ```

mod read;
mod dump;
mod moment;
mod summary;

pub use moment::{Moment, MomentError, NoMoment};
pub use read::{RecordingError, is_recording, read};
pub use summary::{Estimate, Lifetime, Peak};

use std::collections::BTreeMap;

/// What was recorded of a program.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recording {
    /// The program's file.
    pub program: Option<String>,
    /// Its process.
    pub pid: u32,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// The bytes between two samples on average; `None` where every block was recorded.
    pub sample_bytes: Option<u64>,
    /// The blocks, in the order of their births.
    pub blocks: Vec<Block>,
    /// The exact sums over time.
    pub track: Vec<Point>,
    /// What the program has marked: microseconds since the beginning, and words.
    pub marks: Vec<(u64, String)>,
    /// Where blocks were allocated, by number.
    pub sites: BTreeMap<u32, Site>,
    /// The scopes that the program has entered, from number 1 on: the number of the scope around it (0 is none), and its name.
    pub scopes: Vec<(u16, String)>,
    /// Threads, by number.
    pub threads: BTreeMap<u32, Thread>,
    /// What was loaded.
    pub modules: Vec<Module>,
    /// How long it is, in microseconds.
    pub length: u64,
    /// Events that came faster than they could be written: births that are missing, and ends.
    pub lost: u64,
    /// Whether it has its end: a program that is killed leaves a recording without.
    pub is_whole: bool,
}

/// A block that was recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Where it was allocated, by the number of the site.
    pub site: u32,
    /// The bytes that were asked for.
    pub requested: u64,
    /// The bytes that the allocator gave.
    pub usable: u64,
    /// How many blocks like it it stands for: 1 where every block was recorded.
    pub weight: f64,
    /// When it was allocated, in microseconds since the beginning.
    pub born: u64,
    /// When it was given back, and by which thread; `None` if it lived at the end.
    pub freed: Option<(u64, u32)>,
}

impl Block {
    /// The bytes that it stands for, in whole bytes: whoever adds up blocks, here or in a viewer, comes to the same sum.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    pub fn bytes(&self) -> f64 {
        (self.usable as f64 * self.weight).round()
    }

    /// What was asked for of those bytes.
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    pub(crate) fn requested_bytes(&self) -> f64 {
        (self.requested as f64 * self.weight).round()
    }

    /// Whether it lives at this moment, in microseconds since the beginning.
    #[must_use]
    pub fn lives_at(&self, time: u64) -> bool {
        self.born <= time && self.freed.is_none_or(|(freed, _)| freed > time)
    }

    /// How long it lived, in microseconds, if it was given back.
    #[must_use]
    pub fn lifetime(&self) -> Option<u64> {
        self.freed.map(|(freed, _)| freed.saturating_sub(self.born))
    }
}

/// Where blocks were allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// On which thread.
    pub thread: u32,
    /// The return addresses, the innermost first.
    pub stack: Vec<u64>,
    /// In which scope; 0 is none.
    pub scope: u16,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's number.
    pub tid: u32,
    /// Its name when it was met.
    pub name: Option<String>,
}

/// A file that was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Its build id, in hexadecimal.
    pub build_id: Option<String>,
    /// What is added to the addresses in the file to get those in memory.
    pub base: u64,
    /// The addresses of its segments in memory.
    pub segments: Vec<(u64, u64)>,
}

/// The exact sums at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Point {
    /// In microseconds since the beginning.
    pub time: u64,
    /// Bytes allocated since the program's start.
    pub allocated_bytes: u64,
    /// Blocks allocated since then.
    pub allocations: u64,
    /// Bytes given back.
    pub freed_bytes: u64,
    /// Blocks given back.
    pub frees: u64,
    /// Bytes in physical memory.
    pub resident: u64,
}

impl Point {
    /// Bytes in live blocks.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.allocated_bytes.saturating_sub(self.freed_bytes)
    }
}

/// A choice of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which {
    /// All that were allocated.
    Allocated,
    /// Those that lived at the end.
    Retained,
    /// Those that lived when the program had the most in live blocks.
    AtPeak,
    /// Those that were given back within a millisecond.
    Temporary,
}

/// What lives no longer than this is temporary, in microseconds.
pub const TEMPORARY: u64 = 1000;
