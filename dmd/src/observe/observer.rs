//! Observers of single allocations: the sampling rate and the log of each.

use std::fmt;
use std::num::NonZeroU64;

use memreport::__private::as_own;

use super::allocation::Clock;
use super::log::{AllocationsLog, LogError, allocation_of};
use super::part::Part;
use crate::event::events::TimedEvent;
use crate::event::observers::Observation;
use crate::event::ring::CAPACITY;
use crate::hook::own_frames;
use crate::hook::start::{StartError, prepare_stacks};
use crate::sample::rate::{Probability, TooManyRates};
use crate::stack::limits::renew_names;
use crate::stack::thread::is_own;

/// The default maximum number of entries of a log.
pub const DEFAULT_LOG_LENGTH: usize = 5000;

/// The upper limit for the maximum number of entries of a log.
///
/// It is half of the ring that threads write to, so that writers do not overtake a reader at once.
pub const MAX_LOG_LENGTH: usize = (CAPACITY / 2) as usize;

/// The sampling rate of an observer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sampling {
    /// Samples each block with this probability, from 0 to 1: 0.05 is one block in twenty.
    Blocks(f64),
    /// Samples on average one byte in this many, as `--mode=profile` does. Big blocks are sampled
    /// more often.
    Bytes(NonZeroU64),
}

impl Sampling {
    /// Samples every allocation.
    pub const ALL: Sampling = Sampling::Blocks(1.0);

    fn probability(self) -> Result<Probability, ObserveError> {
        match self {
            Sampling::Blocks(of_block) if (0.0..=1.0).contains(&of_block) => {
                Ok(Probability { mean: None, of_block })
            }
            Sampling::Blocks(other) => Err(ObserveError::InvalidProbability(other)),
            Sampling::Bytes(mean) => Ok(Probability::of_bytes(mean)),
        }
    }
}

/// Observes single allocations until it is dropped.
///
/// A sampled allocation gets a stack and a timestamp, is found by
/// [`allocation_site`](crate::allocation_site), and is added to the observer's log.
///
/// Several observers can be active at once, each with a log of its own. They share one sample,
/// whose probability is the greatest of all observers and of the profile, if one is taken. If DMD
/// tracks all blocks anyway (`DMD=1`), only sampled blocks are logged.
///
/// Threads of the tracker and of `memreport::serve` are not observed, nor is the reading of debug
/// information by [`Stack::functions`](super::Stack::functions).
#[derive(Debug)]
#[must_use = "an observer stops when it is dropped"]
pub struct Observer {
    sampling: Sampling,
    max_log_length: usize,
    part: Part,
    /// `None` while it is paused.
    observing: Option<Observation>,
}

impl Observer {
    /// Starts an observer of every allocation.
    ///
    /// # Errors
    ///
    /// Those of [`sampling`](Self::sampling).
    pub fn start() -> Result<Self, ObserveError> {
        Observer::sampling(Sampling::ALL)
    }

    /// Starts an observer of a sample of the allocations.
    ///
    /// # Errors
    ///
    /// If the program's allocator is not DMD's, if another copy of DMD tracks the process, if the
    /// probability is not between 0 and 1, or if the process has used 31 sampling rates already.
    pub fn sampling(sampling: Sampling) -> Result<Self, ObserveError> {
        let part = Part::default();
        let mut observer =
            Observer { sampling, max_log_length: DEFAULT_LOG_LENGTH, part, observing: None };
        observer.set_tracking(true)?;
        Ok(observer)
    }

    /// Returns whether the observer is active.
    #[must_use]
    pub fn is_tracking(&self) -> bool {
        self.observing.is_some()
    }

    /// Resumes or pauses the observer. Pausing clears the log.
    ///
    /// # Errors
    ///
    /// Those of [`sampling`](Self::sampling); the observer is then paused.
    pub fn set_tracking(&mut self, tracks: bool) -> Result<(), ObserveError> {
        if !tracks {
            drop(self.observing.take());
        } else if self.observing.is_none() {
            let probability = self.sampling.probability()?;
            prepare_stacks()?;
            self.observing = Some(as_own(|| Observation::begin(probability, self.part.limit()))?);
            own_frames::learn();
        }
        Ok(())
    }

    /// Returns the sampling rate.
    #[must_use]
    pub fn allocation_sampling(&self) -> Sampling {
        self.sampling
    }

    /// Sets the sampling rate of future allocations.
    ///
    /// # Errors
    ///
    /// Those of [`sampling`](Self::sampling); the old rate then stays in effect.
    pub fn set_allocation_sampling(&mut self, sampling: Sampling) -> Result<(), ObserveError> {
        let probability = sampling.probability()?;
        if let Some(observing) = &mut self.observing {
            observing.set_probability(probability)?;
        }
        self.sampling = sampling;
        Ok(())
    }

    /// Limits the observer to a part of the program. Hooks compare numbers: what no observer sees
    /// is not logged.
    ///
    /// Entries that were not drained before are limited as well. While other observers see more,
    /// the entries of theirs count against the length of the log.
    ///
    /// ```
    /// use dmd::observe::{Observer, Part};
    ///
    /// dmd::global_allocator!();
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut observer = Observer::start()?;
    /// observer.limit_to(Part::default().scope("request"));
    /// drop(vec![0_u8; 1000]);
    /// {
    ///     memreport::scope!("request");
    ///     drop(vec![0_u8; 2000]);
    /// }
    /// let log = observer.drain_allocations_log()?;
    /// let sizes: Vec<_> = log.entries.iter().map(|entry| entry.requested()).collect();
    /// assert_eq!(sizes, [2000]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit_to(&mut self, part: Part) {
        as_own(|| {
            if let Some(observing) = &mut self.observing {
                observing.set_limit(part.limit());
            }
            self.part = part;
        });
    }

    /// Returns the part of the program that the observer sees.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Returns the maximum number of entries of the log. If there are more, the oldest are dropped.
    #[must_use]
    pub fn max_log_length(&self) -> usize {
        self.max_log_length
    }

    /// Sets the maximum number of entries of the log.
    ///
    /// # Errors
    ///
    /// If it is greater than [`MAX_LOG_LENGTH`]; the old length then stays in effect.
    pub fn set_max_log_length(&mut self, entries: usize) -> Result<(), ObserveError> {
        if entries > MAX_LOG_LENGTH {
            return Err(ObserveError::LogTooLong(entries));
        }
        self.max_log_length = entries;
        Ok(())
    }

    /// Returns whether entries were lost since the log was drained last.
    #[must_use]
    pub fn log_overflowed(&self) -> bool {
        let observing = self.observing.as_ref();
        observing.is_some_and(|observing| observing.backlog() > self.max_log_length as u64)
    }

    /// Removes all entries from the log and returns them, oldest first.
    ///
    /// An allocation that another thread is logging at this moment is in the next log.
    ///
    /// ```
    /// dmd::global_allocator!();
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut observer = dmd::observe::Observer::start()?;
    /// drop(vec![0_u8; 4096]);
    /// let log = observer.drain_allocations_log()?;
    /// assert!(log.entries.iter().any(|allocation| allocation.requested() == 4096));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the observer is paused.
    pub fn drain_allocations_log(&mut self) -> Result<AllocationsLog, LogError> {
        let observing = self.observing.as_mut().ok_or(LogError::NotTracking)?;
        let mut entries = Vec::new();
        let max_entries = self.max_log_length as u64;
        let lost = as_own(|| {
            let mut events: Vec<TimedEvent> = Vec::new();
            let lost = observing.drain(max_entries, |event| {
                // Its first allocations, before it was marked.
                if !is_own(event.thread) {
                    events.push(event);
                }
            });
            events.retain(|event| observing.sees(event));
            renew_names();
            let clock = Clock::now();
            entries = events.iter().filter_map(|event| allocation_of(event, clock)).collect();
            lost
        });
        Ok(AllocationsLog { entries, overflowed: lost > 0, lost })
    }
}

/// An observer cannot start, or cannot use a sampling rate or a length of its log.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ObserveError {
    /// Tracking cannot start.
    Start(StartError),
    /// The probability is not between 0 and 1.
    InvalidProbability(f64),
    /// The log would have more entries than [`MAX_LOG_LENGTH`].
    LogTooLong(usize),
}

impl fmt::Display for ObserveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObserveError::Start(error) => error.fmt(out),
            ObserveError::InvalidProbability(number) => {
                write!(out, "{number} is no probability; it is a number from 0 to 1")
            }
            ObserveError::LogTooLong(entries) => {
                write!(out, "a log has at most {MAX_LOG_LENGTH} entries; {entries} are too many")
            }
        }
    }
}

impl std::error::Error for ObserveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ObserveError::Start(error) => Some(error),
            ObserveError::InvalidProbability(_) | ObserveError::LogTooLong(_) => None,
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
