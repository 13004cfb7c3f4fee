//! Defines the record of one cycle of work on the program's memory, such as a garbage collection.

use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A finished cycle of work on the program's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryEvent {
    /// The number of the cycle. Later cycles have greater numbers; some numbers are skipped.
    pub number: u64,
    /// The reason in a word or two. This crate's are `minimize`, `trim`, `threshold` and
    /// `memory-pressure`.
    pub reason: Cow<'static, str>,
    /// The reason why the work was done all at once, although it could have been done in slices.
    pub nonincremental_reason: Option<Cow<'static, str>>,
    /// The slices of the work, in order.
    pub slices: Vec<Slice>,
}

/// A slice of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slice {
    /// The start of the slice.
    pub start: Instant,
    /// The end of the slice.
    pub end: Instant,
}

impl MemoryEvent {
    /// Returns the total duration of the slices.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.slices.iter().map(|slice| slice.end.saturating_duration_since(slice.start)).sum()
    }

    /// Describes the event in words, for recordings.
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
