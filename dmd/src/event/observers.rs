//! The observers of single allocations: their sampling probabilities, and the ring of their logs.
//!
//! Hooks use one rate and one ring for all observers together. Recordings have a ring of their own:
//! their events would otherwise overwrite log entries, and the number of lost entries would be
//! unknown.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::events::{Event, TimedEvent, decode, encode};
use super::ring::{Reader, Ring};
use crate::sample::plan;
use crate::sample::rate::{Probability, SamplingRate, TooManyRates};
use crate::stack::limits::{self, Limit};
use crate::stack::site::site;
use crate::table::packed_block::Block;
use crate::table::{BLOCKS, granule};

/// The sampled allocations of all threads.
static LOG: Ring = Ring::new();

/// The observers by number.
static ALL: Mutex<Observers> = Mutex::new(Observers { next: 0, list: Vec::new() });

struct Observers {
    next: u64,
    list: Vec<Registered>,
}

/// The wishes of an observer.
struct Registered {
    number: u64,
    probability: Probability,
    limit: Limit,
}

fn all() -> MutexGuard<'static, Observers> {
    // No code panics while it holds the lock, so a poisoned list is intact.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs a sampled allocation. Hooks call it, so it never waits.
pub(crate) fn log(address: usize, block: Block, thread: u32) {
    // Where the table has all blocks, the rate in the table is another than in the log.
    let block = Block { rate: plan::observed_rate(), ..block };
    LOG.push(encode(Event::Allocated { address, block }, block.time, thread));
}

/// A registered observer: until it is dropped, hooks sample for it.
#[derive(Debug)]
pub(crate) struct Observation {
    number: u64,
    probability: Probability,
    limit: Limit,
    reader: Reader,
}

impl Observation {
    pub(crate) fn begin(probability: Probability, limit: Limit) -> Result<Self, TooManyRates> {
        let mut all = all();
        let number = all.next;
        all.next += 1;
        all.list.push(Registered { number, probability, limit: limit.clone() });
        let reader = Reader::new(&LOG);
        let observing = Observation { number, probability, limit, reader };
        let updated = update_hooks(&all);
        drop(all);
        // If that failed, dropping it removes it from the list.
        updated.map(|()| observing)
    }

    /// Sets another probability. On failure the previous one stays.
    pub(crate) fn set_probability(&mut self, probability: Probability) -> Result<(), TooManyRates> {
        let mut all = all();
        let set = |all: &mut Observers, probability| {
            let own = all.list.iter_mut().find(|one| one.number == self.number);
            own.into_iter().for_each(|own| own.probability = probability);
            update_hooks(all)
        };
        let updated = set(&mut all, probability);
        match updated {
            Ok(()) => self.probability = probability,
            // The previous probabilities had a rate.
            Err(TooManyRates) => set(&mut all, self.probability)?,
        }
        updated
    }

    /// Limits the observer.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        let mut all = all();
        let own = all.list.iter_mut().find(|one| one.number == self.number);
        own.into_iter().for_each(|own| own.limit = limit.clone());
        limits::set(&all.list.iter().map(|one| &one.limit));
        self.limit = limit;
    }

    /// Returns whether the observer sees an entry of the log.
    pub(crate) fn sees(&self, entry: &TimedEvent) -> bool {
        let Event::Allocated { block, .. } = entry.event else { return false };
        // Without a site the thread alone is known.
        let scope = site(block.site).map_or(0, |site| site.scope);
        self.limit.sees(entry.thread, scope)
    }

    /// Returns the number of entries since the last call of `drain`.
    pub(crate) fn backlog(&self) -> u64 {
        self.reader.backlog(&LOG)
    }

    /// Calls `each` for the newest entries since the last call, and returns how many older ones are
    /// lost.
    pub(crate) fn drain(&mut self, most: u64, mut each: impl FnMut(TimedEvent)) -> u64 {
        let before = self.reader.lost;
        self.reader.drain_newest(&LOG, most, |words| each(decode(words)));
        self.reader.lost - before
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let mut all = all();
        all.list.retain(|one| one.number != self.number);
        // Fewer observers may need a rate that does not exist. Then the previous, higher rate
        // stays.
        let _ = update_hooks(&all);
    }
}

/// Changes the tracking options, and then what hooks do for observers. Only one thread at a time
/// does so: what is stored beside a plan belongs to it.
pub(crate) fn change_plan(
    change: impl FnOnce() -> Result<(), TooManyRates>,
) -> Result<(), TooManyRates> {
    let all = all();
    change().and_then(|()| update_hooks(&all))
}

/// Sets the hooks' rate to the greatest of all probabilities, including a profile's.
fn update_hooks(all: &Observers) -> Result<(), TooManyRates> {
    limits::set(&all.list.iter().map(|one| &one.limit));
    let probabilities = all.list.iter().map(|one| one.probability);
    match probabilities.reduce(Probability::max) {
        Some(probability) => {
            let rate = SamplingRate::of(
                plan::own_probability().map_or(probability, |own| own.max(probability)),
            )?;
            if let Some(granule) = granule().filter(|_| !plan::plan().is_observed()) {
                // Without observers, new blocks did not overwrite old tombstones.
                BLOCKS.clear_tombstones(granule);
            }
            plan::start_observing(rate);
        }
        None => plan::stop_observing(),
    }
    Ok(())
}
