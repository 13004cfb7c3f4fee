//! A ring buffer of events that any thread writes without waiting.
//!
//! A new event overwrites the oldest; a reader counts an event that it missed as lost. The ring is
//! a sequence lock per slot. An event takes a ticket, and its slot is the ticket modulo the
//! capacity. While the event of ticket `t` is being written, the slot's sequence is `2t + 1`, and
//! afterwards `2t + 2`. A writer that finds its slot in use abandons its event: then others have
//! gone around the whole ring meanwhile.
#![cfg_attr(
    not(loom),
    expect(clippy::cast_possible_truncation, reason = "places in a ring of 65,536")
)]

use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU64, const_fn, fence};

/// The words of an event.
pub(crate) type Words = [u64; EVENT_WORDS];

/// The number of words of an event: with the slot's other words they fill a cache line. Under loom
/// there are two, enough for a torn read.
pub(crate) const EVENT_WORDS: usize = if cfg!(loom) { 2 } else { 6 };

/// The number of slots: 65,536 of 64 bytes. Only used slots are resident.
pub(crate) const CAPACITY: u64 = if cfg!(loom) {
    2
} else if cfg!(miri) {
    1 << 7
} else {
    1 << 16
};

/// The words of a slot: its sequence, the highest ticket that was abandoned here (plus one), and
/// the event.
const SLOT_WORDS: usize = EVENT_WORDS + 2;

/// A ring buffer of events.
pub(crate) struct Ring {
    next: AtomicU64,
    words: LazySlice<AtomicU64>,
}

/// The state of a ticket's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The event is complete.
    Event(Words),
    /// The event is being written.
    Writing,
    /// The event was overwritten or abandoned.
    Lost,
}

impl Ring {
    const_fn! {
        pub(crate) fn new() -> Self {
            Ring { next: AtomicU64::new(0), words: LazySlice::new() }
        }
    }

    fn slot(&self, ticket: u64) -> Option<&'static [AtomicU64]> {
        let words = self.words.get_or_alloc(CAPACITY as usize * SLOT_WORDS)?;
        let start = (ticket % CAPACITY) as usize * SLOT_WORDS;
        words.get(start..start + SLOT_WORDS)
    }

    /// Writes an event.
    pub(crate) fn push(&self, event: Words) {
        // Release, with the Acquire of `started`: a reader that sees this ticket sees every event
        // that was written before it was taken, so events of a thread are read in their order.
        let ticket = self.next.fetch_add(1, Release);
        // Without memory there are no readers either: all tickets are lost.
        let Some([sequence, abandoned, words @ ..]) = self.slot(ticket) else { return };
        let before = sequence.load(Relaxed);
        let is_free = before % 2 == 0 && before <= 2 * ticket;
        // Acquire, with the Release below in the slot's previous writer: our words are stored after
        // its words.
        if !is_free || sequence.compare_exchange(before, 2 * ticket + 1, Acquire, Relaxed).is_err()
        {
            abandoned.fetch_max(ticket + 1, Relaxed);
            return;
        }
        // Release fence, with the Acquire fence of `read`: a reader of one of these words also sees
        // the odd sequence.
        fence(Release);
        for (place, word) in words.iter().zip(event) {
            place.store(word, Relaxed);
        }
        // Release, with the Acquire of `read`: a reader of this sequence sees the words.
        sequence.store(2 * ticket + 2, Release);
    }

    /// Returns the number of events that were started.
    pub(crate) fn started(&self) -> u64 {
        // Acquire, with the Release of `push`.
        self.next.load(Acquire)
    }

    /// Reads the slot of a ticket that was taken.
    pub(crate) fn read(&self, ticket: u64) -> Slot {
        let Some([sequence, abandoned, words @ ..]) = self.slot(ticket) else { return Slot::Lost };
        let seen = sequence.load(Acquire);
        if seen < 2 * ticket + 2 {
            let is_lost = abandoned.load(Relaxed) > ticket;
            return if is_lost { Slot::Lost } else { Slot::Writing };
        }
        let mut event = Words::default();
        for (place, word) in words.iter().zip(&mut event) {
            *word = place.load(Relaxed);
        }
        fence(Acquire);
        // An unchanged sequence proves that no word belongs to a later event.
        let is_whole = seen == 2 * ticket + 2 && sequence.load(Relaxed) == seen;
        if is_whole { Slot::Event(event) } else { Slot::Lost }
    }
}

/// A reader of all events of a ring: it reads each once, and counts those that it missed.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    next: u64,
    /// Tickets whose events were being written during the last call.
    pending: Vec<u64>,
    /// The number of events that were overwritten before they were read.
    pub(crate) lost: u64,
}

impl Reader {
    /// Makes a reader of the events from now on.
    pub(crate) fn new(ring: &Ring) -> Self {
        Reader { next: ring.started(), ..Reader::default() }
    }

    /// Returns the number of events since the last call.
    pub(crate) fn backlog(&self, ring: &Ring) -> u64 {
        self.pending.len() as u64 + ring.started() - self.next
    }

    /// Returns the number of events that were being written during the last call.
    #[cfg(not(loom))]
    pub(crate) fn unwritten(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Calls `each` for all events since the last call. Pending events of the last call come first.
    pub(crate) fn drain(&mut self, ring: &Ring, each: impl FnMut(Words)) {
        self.drain_newest(ring, CAPACITY, each);
    }

    /// Calls `each` for the newest events since the last call, at most `limit`. Older ones are
    /// lost.
    pub(crate) fn drain_newest(&mut self, ring: &Ring, limit: u64, mut each: impl FnMut(Words)) {
        let end = ring.started();
        // Events more than a round behind are overwritten.
        let oldest = end.saturating_sub(limit.min(CAPACITY));
        if oldest > self.next {
            self.lost += oldest - self.next;
            self.next = oldest;
        }
        let pending = std::mem::take(&mut self.pending);
        let (pending, dropped) = split_newest(pending, limit.saturating_sub(end - self.next));
        self.lost += dropped;
        for ticket in pending.into_iter().chain(self.next..end) {
            match ring.read(ticket) {
                Slot::Event(event) => each(event),
                Slot::Writing => self.pending.push(ticket),
                Slot::Lost => self.lost += 1,
            }
        }
        self.next = end;
    }
}

/// Returns the last `limit` elements of a list, and the number of those dropped.
fn split_newest(mut list: Vec<u64>, limit: u64) -> (Vec<u64>, u64) {
    let dropped = list.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    list.drain(..dropped);
    (list, dropped as u64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn events_come_once_and_in_order() {
        const EACH: u64 = if cfg!(miri) { 100 } else { 1000 };
        let ring = Ring::new();
        let mut reader = Reader::new(&ring);
        let mut seen = Vec::new();
        for round in 0..3 {
            for number in 0..EACH {
                ring.push([round * EACH + number; 6]);
            }
            reader.drain(&ring, |event| seen.push(event));
        }
        assert!(seen.iter().copied().eq((0..3 * EACH).map(|number| [number; 6])));
        assert_eq!(reader.lost, 0);
    }

    #[test]
    fn the_newest_are_kept_and_the_others_counted() {
        let ring = Ring::new();
        let mut reader = Reader::new(&ring);
        for number in 0..CAPACITY + 100 {
            ring.push([number; 6]);
        }
        let mut seen = Vec::new();
        reader.drain(&ring, |event| seen.push(event[0]));
        assert!(seen.iter().copied().eq(100..CAPACITY + 100));
        assert_eq!(reader.lost, 100);
    }

    #[test]
    fn a_limited_drain_returns_the_newest() {
        let ring = Ring::new();
        let mut reader = Reader::new(&ring);
        for (pushed, limit, expected) in [(100, 10, 90..100), (5, 10, 100..105), (0, 10, 105..105)]
        {
            (0..pushed).for_each(|number| ring.push([expected.end - pushed + number; 6]));
            assert_eq!(reader.backlog(&ring), pushed);
            let mut seen = Vec::new();
            reader.drain_newest(&ring, limit, |event| seen.push(event[0]));
            assert!(seen.into_iter().eq(expected));
            assert_eq!((reader.lost, reader.backlog(&ring)), (90, 0));
        }
    }

    #[test]
    fn threads_write_while_another_reads_and_every_event_is_read_or_lost() {
        static RING: Ring = Ring::new();
        static DONE: AtomicBool = AtomicBool::new(false);
        const EACH: u64 = if cfg!(miri) { 100 } else { 200_000 };
        let mut reader = Reader::new(&RING);
        let mut last = [0_u64; 4];
        let mut count = 0;
        let mut take = |[thread, number, rest @ ..]: Words| {
            assert_eq!(rest, [number; 4], "torn");
            let last = &mut last[thread as usize];
            assert!(number > *last, "{number} of thread {thread} after {last}");
            *last = number;
            count += 1;
        };
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|thread| {
                    scope.spawn(move || {
                        for number in 1..=EACH {
                            RING.push([thread, number, number, number, number, number]);
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                writers.into_iter().for_each(|writer| writer.join().unwrap());
                DONE.store(true, Relaxed);
            });
            while !DONE.load(Relaxed) {
                reader.drain(&RING, &mut take);
            }
        });
        reader.drain(&RING, &mut take);
        assert_eq!(count + reader.lost, 4 * EACH);
    }
}
