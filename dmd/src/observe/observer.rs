//! Observers: who wants to see single allocations, how many of them, and the log of each.

use std::fmt;
use std::num::NonZeroU64;

use memreport::__private::as_own;

use super::allocation::{Allocation, Clock};
use crate::event::events::{Event, TimedEvent};
use crate::event::observers::Observation;
use crate::event::ring::CAPACITY;
use crate::hook::start::{StartError, prepare};
use crate::sample::rate::{Probability, TooManyRates};

/// The entries of a log, unless another number is asked for.
pub const DEFAULT_LOG_LENGTH: usize = 5000;

/// The most entries that a log can have: half of the ring that threads write to, so that a reader is not overtaken at once.
pub const MAX_LOG_LENGTH: usize = (CAPACITY / 2) as usize;

/// Which allocations are observed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sampling {
    /// Each with this probability, from 0 to 1: 0.05 is one out of twenty.
    Blocks(f64),
    /// Those of which a byte wins, one byte in so many on average: big ones are likelier, as under `--mode=profile`.
    Bytes(NonZeroU64),
}

impl Sampling {
    /// Every allocation.
    pub const ALL: Sampling = Sampling::Blocks(1.0);

    fn probability(self) -> Result<Probability, ObserveError> {
        match self {
            Sampling::Blocks(of_block) if (0.0..=1.0).contains(&of_block) => {
                Ok(Probability { mean: None, of_block })
            }
            Sampling::Blocks(other) => Err(ObserveError::NoProbability(other)),
            Sampling::Bytes(mean) => Ok(Probability::of_bytes(mean)),
        }
    }
}

/// Observes single allocations until it is dropped: they get a stack and a time, so that
/// [`allocation_site`](crate::allocation_site) knows them, and go into its log.
///
/// Several observers are independent, each with a log of its own. What is drawn is drawn for all of them: the greatest
/// probability of all holds for every log, and the sample of a profile is in it. Where blocks enter anyway (`DMD=1`),
/// only those that are drawn are logged.
#[derive(Debug)]
#[must_use = "it observes until it is dropped"]
pub struct Observer {
    sampling: Sampling,
    most: usize,
    /// `None` while it pauses.
    observing: Option<Observation>,
}

impl Observer {
    /// Observes every allocation from now on.
    ///
    /// # Errors
    ///
    /// As [`sampling`](Self::sampling).
    pub fn start() -> Result<Self, ObserveError> {
        Observer::sampling(Sampling::ALL)
    }

    /// Observes a sample of the allocations from now on.
    ///
    /// # Errors
    ///
    /// When the program's allocator is not DMD's, when another copy of DMD tracks the process, when a probability is none, and when
    /// more than 31 samples of different sizes or probabilities are asked for in one process.
    pub fn sampling(sampling: Sampling) -> Result<Self, ObserveError> {
        let mut observer = Observer { sampling, most: DEFAULT_LOG_LENGTH, observing: None };
        observer.set_tracking(true)?;
        Ok(observer)
    }

    /// Whether it observes at this moment.
    #[must_use]
    pub fn is_tracking(&self) -> bool {
        self.observing.is_some()
    }

    /// Goes on observing, or pauses. What is in the log when it pauses is gone.
    ///
    /// # Errors
    ///
    /// As [`sampling`](Self::sampling); it pauses then.
    pub fn set_tracking(&mut self, tracks: bool) -> Result<(), ObserveError> {
        if !tracks {
            drop(self.observing.take());
        } else if self.observing.is_none() {
            let probability = self.sampling.probability()?;
            prepare()?;
            self.observing = Some(as_own(|| Observation::begin(probability))?);
        }
        Ok(())
    }

    /// Which allocations it asks for.
    #[must_use]
    pub fn allocation_sampling(&self) -> Sampling {
        self.sampling
    }

    /// Asks for others from now on.
    ///
    /// # Errors
    ///
    /// As [`sampling`](Self::sampling); it goes on as before then.
    pub fn set_allocation_sampling(&mut self, sampling: Sampling) -> Result<(), ObserveError> {
        let probability = sampling.probability()?;
        if let Some(observing) = &mut self.observing {
            observing.set_probability(probability)?;
        }
        self.sampling = sampling;
        Ok(())
    }

    /// How many entries the log holds: when there are more, the newest are kept.
    #[must_use]
    pub fn max_log_length(&self) -> usize {
        self.most
    }

    /// Has the log hold so many entries, up to [`MAX_LOG_LENGTH`].
    pub fn set_max_log_length(&mut self, entries: usize) {
        self.most = entries.min(MAX_LOG_LENGTH);
    }

    /// Whether more was allocated since the log was drained than it holds, so that the oldest entries are lost.
    #[must_use]
    pub fn log_overflowed(&self) -> bool {
        let observing = self.observing.as_ref();
        observing.is_some_and(|observing| observing.backlog() > self.most as u64)
    }

    /// The entries of the log, the oldest first; the log is empty after this. An allocation that another thread is about to
    /// enter at this moment is in the next log.
    ///
    /// # Errors
    ///
    /// While it pauses.
    pub fn drain_allocations_log(&mut self) -> Result<AllocationsLog, LogError> {
        let observing = self.observing.as_mut().ok_or(LogError::NotTracking)?;
        let mut entries = Vec::new();
        let most = self.most as u64;
        let lost = as_own(|| {
            let mut happened: Vec<TimedEvent> = Vec::new();
            let lost = observing.drain(most, |packed| happened.push(packed));
            let clock = Clock::now();
            entries = happened.iter().filter_map(|happened| logged(happened, clock)).collect();
            lost
        });
        Ok(AllocationsLog { entries, overflowed: lost > 0, lost })
    }
}

/// An packed as the ring has it: its block has no time of its own there.
fn logged(happened: &TimedEvent, clock: Clock) -> Option<Allocation> {
    let Event::Allocated { address, mut block } = happened.event else { return None };
    block.time = happened.time;
    Some(Allocation::of(address, block, clock))
}

/// What a log held when it was drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationsLog {
    /// The allocations, in the order in which they were entered.
    pub entries: Vec<Allocation>,
    /// There were more than the log holds, and the oldest are missing.
    pub overflowed: bool,
    /// How many are missing.
    pub lost: u64,
}

/// Why single allocations are not observed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ObserveError {
    /// Tracking cannot start.
    Start(StartError),
    /// A probability that is not between 0 and 1.
    NoProbability(f64),
}

impl fmt::Display for ObserveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObserveError::Start(error) => error.fmt(out),
            ObserveError::NoProbability(number) => {
                write!(out, "{number} is no probability; it is a number from 0 to 1")
            }
        }
    }
}

impl std::error::Error for ObserveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ObserveError::Start(error) => Some(error),
            ObserveError::NoProbability(_) => None,
        }
    }
}

impl From<StartError> for ObserveError {
    fn from(error: StartError) -> Self {
        ObserveError::Start(error)
    }
}

impl From<TooManyRates> for ObserveError {
    fn from(error: TooManyRates) -> Self {
        ObserveError::Start(error.into())
    }
}

/// Why there is no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogError {
    /// The observer pauses.
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
