//! Who observes single allocations now, with what probability; and the ring that their logs are read from.
//!
//! Hooks know of all observers together only one rate and one ring. The ring is not that of recordings: what a recording wants
//! to hear of would push entries of the logs out, and nobody could say whether what was written over had been one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::events::{Event, Happened, packed, unpacked};
use super::ring::{Reader, Ring};
use crate::sample::plan;
use crate::sample::rate::{Probability, SamplingRate, TooManyRates};
use crate::table::packed_block::Block;
use crate::table::{BLOCKS, granule};

/// The allocations that were drawn, of all threads.
static LOG: Ring = Ring::new();

/// The observers by number.
static ALL: Mutex<Observers> = Mutex::new(Observers { next: 0, list: Vec::new() });

struct Observers {
    next: u64,
    list: Vec<(u64, Probability)>,
}

fn all() -> MutexGuard<'static, Observers> {
    // A list is changed under the lock, and nothing that panics.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An allocation was drawn. In a hook: it waits for nobody.
pub(crate) fn log(address: usize, block: Block, thread: u32) {
    LOG.push(packed(Event::Allocated { address, block }, block.time, thread));
}

/// From here on the hooks draw for one observer more, until this is dropped.
#[derive(Debug)]
pub(crate) struct Observing {
    number: u64,
    probability: Probability,
    reader: Reader,
}

impl Observing {
    pub(crate) fn begin(probability: Probability) -> Result<Self, TooManyRates> {
        let mut all = all();
        let number = all.next;
        all.next += 1;
        all.list.push((number, probability));
        let reader = Reader::new(&LOG);
        let observing = Observing { number, probability, reader };
        let told = tell_hooks(&all);
        drop(all);
        // Dropped, and so taken off the list, if that failed.
        told.map(|()| observing)
    }

    /// ObserverSampler by another probability from now on; by the same if that fails.
    pub(crate) fn set_probability(&mut self, probability: Probability) -> Result<(), TooManyRates> {
        let mut all = all();
        let set = |all: &mut Observers, probability| {
            let own = all.list.iter_mut().find(|(number, _)| *number == self.number);
            own.into_iter().for_each(|own| own.1 = probability);
            tell_hooks(all)
        };
        let told = set(&mut all, probability);
        match told {
            Ok(()) => self.probability = probability,
            // These had a rate.
            Err(TooManyRates) => set(&mut all, self.probability)?,
        }
        told
    }

    /// How many entries were begun since the last draining.
    pub(crate) fn waiting(&self) -> u64 {
        self.reader.waiting(&LOG)
    }

    /// Hands over the newest entries since the last time, and says how many older ones are lost.
    pub(crate) fn drain(&mut self, most: u64, mut each: impl FnMut(Happened)) -> u64 {
        let before = self.reader.lost;
        self.reader.drain_newest(&LOG, most, |words| each(unpacked(words)));
        self.reader.lost - before
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        let mut all = all();
        all.list.retain(|(number, _)| *number != self.number);
        // Fewer observers need no rate that there was no place for: at worst theirs stays.
        let _ = tell_hooks(&all);
    }
}

/// What is tracked otherwise has changed: the hooks are told anew what to draw.
pub(crate) fn refresh() -> Result<(), TooManyRates> {
    tell_hooks(&all())
}

/// The greatest of all probabilities holds, that of a profile included.
fn tell_hooks(all: &Observers) -> Result<(), TooManyRates> {
    let probabilities = all.list.iter().map(|(_, probability)| *probability);
    match probabilities.reduce(Probability::or) {
        Some(probability) => {
            let rate = SamplingRate::of(
                plan::own_probability().map_or(probability, |own| own.or(probability)),
            )?;
            if let Some(granule) = granule().filter(|_| !plan::plan().is_observed()) {
                // Blocks have come unseen since the last time.
                BLOCKS.clear_tombstones(granule);
            }
            plan::observe(rate);
        }
        None => plan::observe_no_more(),
    }
    Ok(())
}
