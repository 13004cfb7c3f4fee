//! Events of single blocks: allocated or freed. Any thread writes them, to the buffers of
//! recordings and to its journal.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of words")]

use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use memreport::__private::OWN;

use super::journal;
use super::queue::{Pushed, Queue, QueueReader};
use super::ring::{Reader, Ring, Words};
use crate::mem::sys;
use crate::mem::sys::{Futex, TickClock};
use crate::sample::plan;
use crate::sample::rate::SamplingRate;
use crate::stack::site;
use crate::stack::thread::Thread;
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, SiteId};

/// The events of all threads, for recordings that may lose some.
static RING: Ring = Ring::new();

/// The events of all threads, for the recording that loses none.
static QUEUE: Queue = Queue::new();

/// The number of events that found no room in the queue, or that came after its reader had failed.
static LOST: AtomicU64 = AtomicU64::new(0);

/// True if the reader of the queue has failed, until its recording ends.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// The number of listeners, and of those that read the ring.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);
static RING_LISTENERS: AtomicUsize = AtomicUsize::new(0);

/// Changes when the listeners have work: a fourth of the queue is full, or a recording ends.
pub(crate) fn work() -> &'static Futex {
    &QUEUE.work
}

/// An event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The block was allocated.
    Allocated { address: usize, block: Block },
    /// The block was freed, at a site that is unknown unless frees have stacks.
    Freed { address: usize, block: Block, freed_at: SiteId },
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

/// Records an event in this thread's journal and, if there are listeners, in their buffers. Hooks
/// call it. It waits only while the queue of a recording is full.
#[cold]
pub(crate) fn record(event: Event) {
    if let Some(journal) = journal::current() {
        journal.record(event);
    }
    // Relaxed: an event may be missed at the moment of the first or last listener.
    if LISTENERS.load(Relaxed) == 0 {
        return;
    }
    let writer = Thread::current(|thread| (thread.number(), thread.is_recorder.get()));
    let (thread, is_recorder) = writer.unwrap_or((0, false));
    if is_recorder && is_of_recorder(event, thread) {
        return;
    }
    if RING_LISTENERS.load(Relaxed) > 0 {
        RING.push(encode(event, sys::monotonic(), thread));
    }
    let is_lost = if QUEUE.may_be_open() {
        // The recorder would wait for itself.
        QUEUE.push(encode(event, sys::ticks(), thread), !is_recorder) == Pushed::Full
    } else {
        HAS_FAILED.load(Relaxed)
    };
    if is_lost {
        LOST.fetch_add(1, Relaxed);
    }
}

/// Returns whether this event on a recorder's thread is of a block of its own.
fn is_of_recorder(event: Event, thread: u32) -> bool {
    match event {
        Event::Allocated { .. } => true,
        Event::Freed { block, .. } => site::site(block.site)
            .is_some_and(|site| u32::from(site.on_alloc) == OWN || site.thread == thread),
    }
}

const FREED: u64 = 1 << 63;
const RATE_AT: u32 = 56;
const THREAD_AT: u32 = 24;
/// The place of the site of the free, above the site of the allocation.
const FREED_AT_AT: u32 = 32;

pub(crate) fn encode(event: Event, time: u64, thread: u32) -> Words {
    let (flag, address, block, freed_at) = match event {
        Event::Allocated { address, block } => (0, address, block, SiteId::UNKNOWN),
        Event::Freed { address, block, freed_at } => (FREED, address, block, freed_at),
    };
    let Block { requested, usable, site, rate, epoch, .. } = block;
    let head = flag | u64::from(rate.number()) << RATE_AT | u64::from(thread) << THREAD_AT;
    [
        time,
        head | u64::from(epoch.number()),
        u64::from(freed_at.number()) << FREED_AT_AT | u64::from(site.number()),
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
        Event::Freed { address, block, freed_at: SiteId::from_number((site >> FREED_AT_AT) as u32) }
    };
    TimedEvent { time, thread: (head >> THREAD_AT) as u32, event }
}

/// A reader of all events from its creation to its end. If it is dropped before, it has failed: the
/// following events are counted as lost until [`end_failed`].
#[derive(Debug)]
pub(crate) struct Listener {
    source: Option<Source>,
}

/// The buffer that a listener reads.
#[derive(Debug)]
enum Source {
    /// With times in nanoseconds of the monotonic clock.
    Ring(Reader),
    /// With times in ticks.
    Queue(QueueReader, TickClock),
}

impl Listener {
    /// Begins to receive events. Unless it may lose some, hooks wait for it from now on. Returns
    /// `None` if they wait for another one already.
    pub(crate) fn begin(may_lose: bool) -> Option<Self> {
        let source = if may_lose {
            RING_LISTENERS.fetch_add(1, AcqRel);
            Source::Ring(Reader::new(&RING))
        } else {
            if HAS_FAILED.load(Relaxed) {
                return None;
            }
            // Chosen before the first event that the reader returns.
            let clock = TickClock::begin();
            let reader = QueueReader::open(&QUEUE)?;
            LOST.store(0, Relaxed);
            Source::Queue(reader, clock)
        };
        // AcqRel, with the one in `end_one`: the plan changes before the first event and after the
        // last.
        if LISTENERS.fetch_add(1, AcqRel) == 0 {
            plan::start_events();
        }
        Some(Listener { source: Some(source) })
    }

    /// Calls `each` for the events since the last call, approximately in the order of time.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(TimedEvent)) {
        match &mut self.source {
            Some(Source::Ring(reader)) => reader.drain(&RING, |words| each(decode(words))),
            Some(Source::Queue(reader, clock)) => {
                clock.compare();
                reader.drain(&QUEUE, |words| {
                    let event = decode(words);
                    each(TimedEvent { time: clock.nanoseconds(event.time), ..event });
                });
            }
            None => {}
        }
    }

    /// Returns the number of events that were being written during the last call of
    /// [`drain`](Self::drain).
    pub(crate) fn unwritten(&self) -> u64 {
        match &self.source {
            Some(Source::Ring(reader)) => reader.unwritten(),
            Some(Source::Queue(reader, _)) => reader.unwritten(),
            None => 0,
        }
    }

    /// Returns the number of events that were lost.
    pub(crate) fn lost(&self) -> u64 {
        match &self.source {
            Some(Source::Ring(reader)) => reader.lost,
            _ => LOST.load(Relaxed),
        }
    }

    /// Ends it. Hooks that wait for it go on.
    pub(crate) fn end(mut self) {
        if let Some(source) = self.source.take() {
            close(source);
            end_one();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        match self.source.take() {
            Some(source @ Source::Queue(..)) => {
                HAS_FAILED.store(true, Relaxed);
                close(source);
            }
            Some(source @ Source::Ring(_)) => {
                close(source);
                end_one();
            }
            None => {}
        }
    }
}

/// Ends the recording of a listener that has failed. Returns the number of events that are lost
/// since, which only a listener that loses none counts.
pub(crate) fn end_failed() -> u64 {
    if !HAS_FAILED.swap(false, AcqRel) {
        return 0;
    }
    end_one();
    LOST.swap(0, Relaxed)
}

fn close(source: Source) {
    match source {
        Source::Ring(_) => {
            RING_LISTENERS.fetch_sub(1, AcqRel);
        }
        Source::Queue(reader, _) => reader.close(&QUEUE),
    }
}

fn end_one() {
    if LISTENERS.fetch_sub(1, AcqRel) == 1 && !journal::was_ever_created() {
        plan::stop_events();
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
            Event::Freed { address: 32, block, freed_at: SiteId::UNKNOWN },
            Event::Freed { address: 32, block, freed_at: SiteId::from_number(0x00ff_fffe) },
        ] {
            let TimedEvent { time, thread, event: out } = decode(encode(event, 12345, 0xffff_ffff));
            assert_eq!((time, thread, out), (12345, 0xffff_ffff, event));
        }
    }

    #[test]
    fn events_after_a_failed_listener_are_lost_until_it_ends() {
        let listener = Listener::begin(false).expect("no other test listens to the queue");
        // As if its thread had panicked.
        drop(listener);
        assert!(Listener::begin(false).is_none(), "the failed one has to end first");
        let block = Block {
            requested: 1,
            usable: 24,
            site: SiteId::UNKNOWN,
            epoch: Epoch::FIRST,
            rate: SamplingRate::EVERY,
            time: 0,
        };
        for address in [32, 64, 96] {
            record(Event::Allocated { address, block });
        }
        assert_eq!(end_failed(), 3);
        assert_eq!(end_failed(), 0);
    }

    #[test]
    fn the_frees_of_a_recorders_thread_count_unless_the_block_is_its_own() {
        let (site, epoch, rate) = (SiteId::UNKNOWN, Epoch::FIRST, SamplingRate::EVERY);
        let block = Block { requested: 1, usable: 24, site, epoch, rate, time: 0 };
        assert!(is_of_recorder(Event::Allocated { address: 32, block }, 7));
        let freed = Event::Freed { address: 32, block, freed_at: SiteId::UNKNOWN };
        assert!(!is_of_recorder(freed, 7));
    }

    #[test]
    fn events_that_are_being_written_are_counted() {
        let queue = Queue::new();
        let mut reader = QueueReader::open(&queue).expect("nobody reads it");
        queue.begin_unfinished();
        queue.begin_unfinished();
        reader.drain(&queue, |event| panic!("{event:?} is not written"));
        let source = Some(Source::Queue(reader, TickClock::begin()));
        // It listens to no queue of the process, so it does not end as others do.
        let listener = std::mem::ManuallyDrop::new(Listener { source });
        assert_eq!(listener.unwritten(), 2);
        let other = std::mem::ManuallyDrop::new(Listener { source: None });
        assert_eq!(other.unwritten(), 0);
    }
}
