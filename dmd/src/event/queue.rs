//! A bounded queue of events that loses none: writers wait for room, and one reader makes it.
//!
//! Each event takes a ticket. Its slot is the ticket modulo the capacity, and its round is the
//! ticket divided by the capacity. The word of a slot has the round that it is in. In each round
//! its writer stores an event, and the reader takes the event and sends the slot to the next round.
//!
//! A writer whose slot still has the event of an earlier round waits for the reader. A writer whose
//! slot still has an unfinished writer skips its own round and takes another ticket: the unfinished
//! one may be the very thread that a signal handler interrupts. So writers wait for nobody but the
//! reader, and the reader waits for nobody.
//!
//! Writers stop waiting when the queue closes, and in forked children, which have no reader.
#![cfg_attr(
    not(loom),
    expect(clippy::cast_possible_truncation, reason = "places in a queue of 65,536")
)]

use std::process::id as process_id;
use std::time::Duration;

use super::ring::{EVENT_WORDS, Words};
use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::mem::sync::{AtomicU32, AtomicU64, const_fn};
#[cfg(not(loom))]
use crate::mem::sys;
use crate::mem::sys::Futex;

/// The number of slots: 65,536 of 64 bytes. Only used slots are resident.
pub(crate) const CAPACITY: u64 = if cfg!(loom) {
    2
} else if cfg!(miri) {
    1 << 6
} else {
    1 << 16
};

/// The words of a slot: its state, the event, and padding to a cache line.
const SLOT_WORDS: usize = if cfg!(loom) { EVENT_WORDS + 1 } else { 8 };

/// The reader is woken each time that this many events were written.
const BATCH: u64 = CAPACITY.div_ceil(4);

/// The distance of the slot that a writer prefetches.
#[cfg(not(loom))]
const AHEAD: u64 = 8;

/// The number of times that a writer looks for room before it sleeps.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// The time after which a sleeping writer looks again whether there is a reader.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The state of a slot: its round, whether the event of that round is written, and how many of the
/// following rounds are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u64);

const ROUND_AT: u32 = 33;
const WRITTEN: u64 = 1 << 32;

impl State {
    fn free(round: u64) -> Self {
        State(round << ROUND_AT)
    }

    fn round(self) -> u64 {
        self.0 >> ROUND_AT
    }

    fn is_written(self) -> bool {
        self.0 & WRITTEN != 0
    }

    /// Returns the last round that is over when this one is.
    fn last_skipped(self) -> u64 {
        self.round() + (self.0 & (WRITTEN - 1))
    }

    fn skip_to(self, round: u64) -> Self {
        State(self.0 + (round - self.last_skipped()))
    }
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The event is in the queue.
    Written,
    /// There was no room, and the writer must not wait.
    Full,
    /// There is no reader.
    Closed,
}

/// A ticket's turn at its slot.
enum Turn {
    Free,
    Skipped,
    Full,
    Closed,
}

/// A bounded queue of events.
pub(crate) struct Queue {
    next: AtomicU64,
    /// The process of the reader; 0 if there is none.
    reader: AtomicU32,
    /// The number of threads that sleep until a slot is free.
    sleepers: AtomicU32,
    /// Changes when slots become free.
    freed: Futex,
    /// Changes when the reader has work.
    pub(crate) work: Futex,
    words: LazySlice<AtomicU64>,
}

impl Queue {
    const_fn! {
        pub(crate) fn new() -> Self {
            Queue {
                next: AtomicU64::new(0),
                reader: AtomicU32::new(0),
                sleepers: AtomicU32::new(0),
                freed: Futex::new(),
                work: Futex::new(),
                words: LazySlice::new(),
            }
        }
    }

    fn slot(&self, ticket: u64) -> Option<&'static [AtomicU64]> {
        let words = self.words.get_or_alloc(CAPACITY as usize * SLOT_WORDS)?;
        let start = (ticket % CAPACITY) as usize * SLOT_WORDS;
        words.get(start..start + SLOT_WORDS)
    }

    /// Takes a ticket as a writer does that is then interrupted.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn begin_unfinished(&self) {
        self.next.fetch_add(1, AcqRel);
    }

    /// Returns whether the queue has a reader, perhaps one in the parent of a forked process.
    #[inline]
    pub(crate) fn may_be_open(&self) -> bool {
        // Relaxed: an event at the moment of opening or closing may be in or out.
        self.reader.load(Relaxed) != 0
    }

    /// Returns whether the queue has a reader in this process.
    fn is_open(&self) -> bool {
        let reader = self.reader.load(Acquire);
        if reader != 0 && reader != process_id() {
            // A forked child: it is not recorded. Relaxed: nothing depends on who stores it.
            let _ = self.reader.compare_exchange(reader, 0, Relaxed, Relaxed);
        }
        reader == process_id()
    }

    /// Writes an event, and waits for room if there is none and if `may_wait`.
    pub(crate) fn push(&self, event: Words, may_wait: bool) -> Pushed {
        loop {
            // Release, with the Acquire of `drain`: a reader that sees this ticket sees every event
            // that was written before it was taken, so events of a block are read in their order.
            let ticket = self.next.fetch_add(1, AcqRel);
            if ticket.is_multiple_of(BATCH) {
                self.wake_reader();
            }
            let Some([state, words @ ..]) = self.slot(ticket) else { return Pushed::Full };
            // The reader's processor has the line that will be needed soon.
            #[cfg(not(loom))]
            if let Some([ahead, ..]) = self.slot(ticket + AHEAD) {
                sys::prefetch_to_write(ahead);
            }
            match self.turn(state, ticket / CAPACITY, may_wait) {
                Turn::Free => {
                    for (place, word) in words.iter().zip(event) {
                        place.store(word, Relaxed);
                    }
                    // Release, with the Acquire of `take`: its reader sees the words.
                    state.fetch_add(WRITTEN, Release);
                    return Pushed::Written;
                }
                Turn::Skipped => {}
                Turn::Full => return Pushed::Full,
                Turn::Closed => return Pushed::Closed,
            }
        }
    }

    /// Waits until the slot is in this round.
    fn turn(&self, word: &AtomicU64, round: u64, may_wait: bool) -> Turn {
        let mut spins = 0;
        loop {
            // Acquire, with the Release of `take`: our words are stored after it has read theirs.
            let state = State(word.load(Acquire));
            if state.round() == round {
                return Turn::Free;
            }
            if state.last_skipped() >= round {
                return Turn::Skipped;
            }
            let skips = if !state.is_written() {
                Some(Turn::Skipped)
            } else if !may_wait {
                Some(Turn::Full)
            } else if spins >= SPINS && !self.is_open() {
                Some(Turn::Closed)
            } else {
                None
            };
            let Some(skips) = skips else {
                if spins < SPINS {
                    spins += 1;
                    std::hint::spin_loop();
                } else {
                    self.sleep(word, state);
                }
                continue;
            };
            // Relaxed: the number of skipped rounds publishes nothing.
            let skipped = state.skip_to(round).0;
            if word.compare_exchange(state.0, skipped, Relaxed, Relaxed).is_ok() {
                return skips;
            }
        }
    }

    /// Sleeps until the reader has freed slots, if this one is still in that state.
    fn sleep(&self, word: &AtomicU64, state: State) {
        // SeqCst, with those of `announce_room`: either the reader sees this sleeper and wakes it,
        // or this thread sees the change.
        self.sleepers.fetch_add(1, SeqCst);
        let seen = self.freed.changes();
        if word.load(Acquire) == state.0 && self.may_be_open() {
            self.wake_reader();
            self.freed.wait(seen, LOOK_AGAIN);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    /// Wakes the reader, if it waits for `work`.
    pub(crate) fn wake_reader(&self) {
        self.work.change();
        self.work.wake();
    }

    /// Wakes the writers that wait for room.
    fn announce_room(&self) {
        self.freed.change();
        if self.sleepers.load(SeqCst) > 0 {
            self.freed.wake();
        }
    }
}

/// The only reader of a queue.
#[derive(Debug)]
pub(crate) struct QueueReader {
    next: u64,
    /// Tickets that were not written yet during the last call.
    unwritten: Vec<u64>,
    /// The first ticket that it returns. Events before are those of an earlier reader.
    first: u64,
}

/// The state of a ticket's event.
enum Taken {
    Event(Words),
    Unwritten,
    Skipped,
}

impl QueueReader {
    /// Opens a queue. Returns `None` if it has a reader in this process.
    pub(crate) fn open(queue: &Queue) -> Option<Self> {
        // A forked child has the number of its parent's reader.
        let before = Some(queue.reader.load(Relaxed)).filter(|reader| *reader != process_id())?;
        // Acquire, with the Release of `close`: the former reader is done with the slots.
        queue.reader.compare_exchange(before, process_id(), AcqRel, Relaxed).ok()?;
        let first = queue.next.load(Acquire);
        // Each slot may still have the event of one ticket for a former reader.
        let places = if first > 0 { 0..CAPACITY } else { 0..0 };
        let ticket_at = |place| {
            let state = State(queue.slot(place)?.first()?.load(Acquire));
            Some(state.round() * CAPACITY + place)
        };
        let left = places.filter_map(ticket_at).filter(|ticket| *ticket < first);
        Some(QueueReader { next: first, unwritten: left.collect(), first })
    }

    /// Calls `each` for the events since the last call, and makes room. Tickets that were not
    /// written yet during the last call come first.
    pub(crate) fn drain(&mut self, queue: &Queue, mut each: impl FnMut(Words)) {
        // Acquire, with the Release of `push`.
        let end = queue.next.load(Acquire);
        let unwritten = std::mem::take(&mut self.unwritten);
        let tickets = unwritten.into_iter().chain(self.next..end);
        for (count, ticket) in (1_u64..).zip(tickets) {
            match take(queue, ticket) {
                Taken::Event(event) if ticket >= self.first => each(event),
                Taken::Event(_) | Taken::Skipped => {}
                Taken::Unwritten => self.unwritten.push(ticket),
            }
            if count.is_multiple_of(BATCH) {
                queue.announce_room();
            }
        }
        self.next = end;
        queue.announce_room();
    }

    /// Returns the number of tickets that were not written yet during the last call.
    pub(crate) fn unwritten(&self) -> u64 {
        self.unwritten.len() as u64
    }

    /// Closes the queue. Writers that wait for room leave.
    pub(crate) fn close(self, queue: &Queue) {
        queue.reader.store(0, Release);
        queue.freed.change();
        queue.freed.wake();
    }
}

/// Takes the event of a ticket, and sends its slot to the next round.
fn take(queue: &Queue, ticket: u64) -> Taken {
    let Some([word, words @ ..]) = queue.slot(ticket) else { return Taken::Skipped };
    let round = ticket / CAPACITY;
    // Acquire, with the Release of `push`.
    let state = State(word.load(Acquire));
    if state.round() != round {
        let is_over = state.last_skipped() >= round;
        return if is_over { Taken::Skipped } else { Taken::Unwritten };
    }
    if !state.is_written() {
        return Taken::Unwritten;
    }
    let mut event = Words::default();
    for (place, word) in words.iter().zip(&mut event) {
        *word = place.load(Relaxed);
    }
    // Only the number of skipped rounds can change meanwhile. Release, with the Acquire of `turn`.
    let free = |state| Some(State::free(State(state).last_skipped() + 1).0);
    let _ = word.fetch_update(Release, Relaxed, free);
    Taken::Event(event)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_write_more_than_there_is_room_for_and_no_event_is_lost() {
        const EACH: u64 = if cfg!(miri) { 100 } else { 100_000 };
        let queue = Queue::new();
        let mut reader = QueueReader::open(&queue).expect("nobody reads it");
        let mut last = [0_u64; 3];
        let mut count = 0;
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let queue = &queue;
                scope.spawn(move || {
                    for number in 1..=EACH {
                        let event = [thread, number, number, number, number, number];
                        assert_eq!(queue.push(event, true), Pushed::Written);
                    }
                });
            }
            while count < 3 * EACH {
                let changes = queue.work.changes();
                let before = count;
                reader.drain(&queue, |[thread, number, rest @ ..]| {
                    assert_eq!(rest, [number; 4], "torn");
                    let last = &mut last[usize::try_from(thread).expect("it is small")];
                    assert_eq!(number, *last + 1, "thread {thread}");
                    *last = number;
                    count += 1;
                });
                if count == before {
                    // Returns early if there is work.
                    queue.work.wait(changes, Duration::from_millis(10));
                }
            }
        });
    }

    /// Writes an event of this number, without waiting.
    fn push(queue: &Queue, number: u64) -> Pushed {
        queue.push([number; 6], false)
    }

    fn drained(reader: &mut QueueReader, queue: &Queue) -> Vec<u64> {
        let mut numbers = Vec::new();
        reader.drain(queue, |event| numbers.push(event[0]));
        numbers
    }

    #[test]
    fn rounds_are_skipped_up_to_a_round() {
        let state = State::free(2).skip_to(5);
        assert_eq!((state.round(), state.last_skipped()), (2, 5));
        assert_eq!(state.skip_to(6).last_skipped(), 6);
    }

    #[test]
    fn a_writer_passes_over_the_slot_of_an_unfinished_one() {
        let queue = Queue::new();
        let mut reader = QueueReader::open(&queue).expect("nobody reads it");
        queue.begin_unfinished();
        for number in 1..CAPACITY {
            assert_eq!(push(&queue, number), Pushed::Written);
        }
        assert!(drained(&mut reader, &queue).into_iter().eq(1..CAPACITY));
        assert_eq!(reader.unwritten(), 1);
        // The next ticket has the slot of the unfinished one.
        assert_eq!(push(&queue, 7), Pushed::Written);
        assert_eq!(drained(&mut reader, &queue), [7]);
    }

    #[test]
    fn without_room_an_event_that_must_not_wait_is_refused() {
        let queue = Queue::new();
        let mut reader = QueueReader::open(&queue).expect("nobody reads it");
        for number in 0..CAPACITY {
            assert_eq!(push(&queue, number), Pushed::Written);
        }
        assert_eq!(push(&queue, CAPACITY), Pushed::Full);
        assert!(drained(&mut reader, &queue).into_iter().eq(0..CAPACITY));
        assert_eq!(push(&queue, 5), Pushed::Written);
        assert_eq!(drained(&mut reader, &queue), [5]);
    }

    #[test]
    fn events_of_a_former_reader_are_not_read() {
        let queue = Queue::new();
        let reader = QueueReader::open(&queue).expect("nobody reads it");
        assert!(QueueReader::open(&queue).is_none(), "one reads it");
        (0..3).for_each(|number| assert_eq!(push(&queue, number), Pushed::Written));
        reader.close(&queue);
        let mut reader = QueueReader::open(&queue).expect("nobody reads it");
        assert_eq!(push(&queue, 3), Pushed::Written);
        assert_eq!(drained(&mut reader, &queue), [3]);
    }
}
