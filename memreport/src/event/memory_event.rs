//! Defines the record of one cycle of work on the program's memory, such as a garbage collection.

use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A cycle of work on the program's memory that has come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryEvent {
    /// Its number: a cycle that begins later has a greater one, and not every number is used.
    pub number: u64,
    /// Why it happened, in a word or two: `minimize`, `trim`, `threshold` and `memory-pressure` are this crate's.
    pub reason: Cow<'static, str>,
    /// Why the work was done all at once, where it could have been done in pieces.
    pub nonincremental_reason: Option<Cow<'static, str>>,
    /// The pieces in which it was done, in their order.
    pub slices: Vec<Slice>,
}

/// A piece of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slice {
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

impl MemoryEvent {
    /// How long its slices took, all together.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.slices.iter().map(|slice| slice.end.saturating_duration_since(slice.start)).sum()
    }

    /// In words, for recordings.
    pub(crate) fn words(&self) -> String {
        let milliseconds = self.duration().as_secs_f64() * 1000.0;
        let slices = match self.slices.len() {
            1 => "1 slice".to_owned(),
            count => format!("{count} slices"),
        };
        let why = self.nonincremental_reason.as_ref();
        let why = why.map_or_else(String::new, |why| format!(", all at once: {why}"));
        format!("{}: {slices}, {milliseconds:.3} ms{why}", self.reason)
    }
}
