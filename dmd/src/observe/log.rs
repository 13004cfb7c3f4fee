//! The log of an observer, as it is drained.

use std::fmt;

use super::allocation::{Allocation, Clock};
use crate::event::events::{Event, TimedEvent};

/// The allocations that a log contained when it was drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationsLog {
    /// The allocations, in the order in which they were logged.
    pub entries: Vec<Allocation>,
    /// True if the log was too short, so that the oldest entries are missing.
    pub overflowed: bool,
    /// The number of missing entries.
    pub lost: u64,
}

/// Converts an event of the ring; `None` if it is no allocation.
pub(super) fn allocation_of(event: &TimedEvent, clock: Clock) -> Option<Allocation> {
    let Event::Allocated { address, mut block } = event.event else { return None };
    // The block itself has no time in the ring.
    block.time = event.time;
    Some(Allocation::of(address, block, clock))
}

/// A log cannot be drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogError {
    /// The observer is paused.
    NotTracking,
}

impl fmt::Display for LogError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LogError::NotTracking => {
                "there is no log: the observer pauses; `set_tracking(true)` has it go on"
            }
        })
    }
}

impl std::error::Error for LogError {}
