//! Events of single blocks: allocated or freed. Any thread writes them, to one ring and to its
//! journal.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of words")]

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use super::journal;
use super::ring::{Reader, Ring, Words};
use crate::mem::sys;
use crate::sample::plan;
use crate::sample::rate::SamplingRate;
use crate::stack::thread::Thread;
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, SiteId};

/// The events of all threads.
pub(crate) static RING: Ring = Ring::new();

/// The number of listeners that read the ring.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);

/// An event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The block was allocated.
    Allocated { address: usize, block: Block },
    /// The block was freed.
    Freed { address: usize, block: Block },
}

/// An event, with its time and thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedEvent {
    /// The time in nanoseconds of the monotonic clock.
    pub(crate) time: u64,
    /// The number of the thread; 0 if unknown.
    pub(crate) thread: u32,
    pub(crate) event: Event,
}

/// Records an event in this thread's journal and, if there are listeners, in the ring. Hooks call
/// it, so it never waits.
#[cold]
pub(crate) fn record(event: Event) {
    if let Some(journal) = journal::current() {
        journal.record(event);
    }
    let thread = Thread::current(Thread::number);
    // Relaxed: an event may be lost at the moment of the first or last listener.
    if LISTENERS.load(Relaxed) > 0 {
        RING.push(encode(event, sys::monotonic(), thread.unwrap_or(0)));
    }
}

const FREED: u64 = 1 << 63;
const RATE_AT: u32 = 56;
const THREAD_AT: u32 = 24;

pub(crate) fn encode(event: Event, time: u64, thread: u32) -> Words {
    let (flag, address, block) = match event {
        Event::Allocated { address, block } => (0, address, block),
        Event::Freed { address, block } => (FREED, address, block),
    };
    let Block { requested, usable, site, rate, epoch, .. } = block;
    let head = flag | u64::from(rate.number()) << RATE_AT | u64::from(thread) << THREAD_AT;
    [
        time,
        head | u64::from(epoch.number()),
        u64::from(site.number()),
        address as u64,
        requested as u64,
        usable as u64,
    ]
}

pub(crate) fn decode([time, head, site, address, requested, usable]: Words) -> TimedEvent {
    let block = Block {
        requested: requested as usize,
        usable: usable as usize,
        site: SiteId::from_number(site as u32),
        epoch: Epoch::from_number(head as u8),
        rate: SamplingRate::from_number((head >> RATE_AT) as u8 & 0x7f),
        time: 0,
    };
    let address = address as usize;
    let event = if head & FREED == 0 {
        Event::Allocated { address, block }
    } else {
        Event::Freed { address, block }
    };
    TimedEvent { time, thread: (head >> THREAD_AT) as u32, event }
}

/// A reader of all events from its creation to its drop.
#[derive(Debug)]
pub(crate) struct Listener {
    reader: Reader,
}

impl Listener {
    pub(crate) fn new() -> Self {
        // AcqRel, with the one in `drop`: the plan changes before the first event and after the
        // last.
        if LISTENERS.fetch_add(1, AcqRel) == 0 {
            plan::start_events();
        }
        Listener { reader: Reader::new(&RING) }
    }

    /// Calls `each` for the events since the last call, approximately in the order of time.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(TimedEvent)) {
        self.reader.drain(&RING, |words| each(decode(words)));
    }

    /// Returns the number of events that were overwritten before they were read.
    pub(crate) fn lost(&self) -> u64 {
        self.reader.lost
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if LISTENERS.fetch_sub(1, AcqRel) == 1 && !journal::was_ever_created() {
            plan::stop_events();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_round_trip() {
        let block = Block {
            requested: 5_000_000_000,
            usable: 5_000_000_024,
            site: SiteId::from_number(0x00ff_ffff),
            epoch: Epoch::from_number(3),
            rate: SamplingRate::from_number(7),
            time: 0,
        };
        for event in [
            Event::Allocated { address: 0x7fff_1234_5670, block },
            Event::Freed { address: 32, block },
        ] {
            let TimedEvent { time, thread, event: out } = decode(encode(event, 12345, 0xffff_ffff));
            assert_eq!((time, thread, out), (12345, 0xffff_ffff, event));
        }
    }
}
