//! Loom models of the buffers of events. See `mem::models` for how to run them.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use super::queue::{Pushed, Queue, QueueReader};
use super::ring::{EVENT_WORDS, Reader, Ring, Slot};
use crate::mem::models::model;

/// Fails if `Reader::drain_newest` does not count the events before the newest as lost, or drops
/// pending tickets without counting them.
#[test]
fn limited_drains_read_or_count_every_event() {
    model(2, || {
        let ring = Arc::new(Ring::new());
        let writers = [1, 2].map(|number| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.push([number; EVENT_WORDS]);
                if number == 1 {
                    ring.push([3; EVENT_WORDS]);
                }
            })
        });
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        let mut drain = |reader: &mut Reader, most| {
            let before = reader.lost;
            let (mut read, waiting) = (0, reader.backlog(&ring));
            reader.drain_newest(&ring, most, |event| {
                assert_eq!(event, [event[0]; EVENT_WORDS], "torn");
                seen.push(event[0]);
                read += 1;
            });
            assert!(read <= most);
            assert!(
                waiting <= most || reader.lost > before,
                "too many were waiting, and none is lost"
            );
        };
        drain(&mut reader, 1);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        drain(&mut reader, 1);
        assert_eq!(reader.backlog(&ring), 0);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64 + reader.lost, 3, "each is read or lost, and none twice");
    });
}

/// Fails if `Ring::push` claims its slot with a plain store, omits its fence, or publishes with a
/// relaxed store; and if `Ring::read` does not read the sequence a second time.
#[test]
fn an_event_is_read_untorn_or_lost() {
    model(2, || {
        let ring = Arc::new(Ring::new());
        let other = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.push([1; EVENT_WORDS]);
                ring.push([2; EVENT_WORDS]);
            })
        };
        let last = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.push([3; EVENT_WORDS]))
        };
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        let mut drain = |reader: &mut Reader| {
            reader.drain(&ring, |event| {
                assert_eq!(event, [event[0]; EVENT_WORDS], "torn");
                seen.push(event[0]);
            });
        };
        drain(&mut reader);
        other.join().unwrap();
        last.join().unwrap();
        drain(&mut reader);
        assert_eq!(seen.len() as u64 + reader.lost, 3);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64 + reader.lost, 3, "none twice");
        assert_ne!(ring.read(2), Slot::Writing);
    });
}

/// Fails if `Ring::push` takes its ticket without release, or `Ring::started` reads it without
/// acquire: a thread's later event is read, and its earlier one seems unwritten.
#[test]
fn events_of_a_thread_are_read_in_their_order() {
    model(2, || {
        let ring = Arc::new(Ring::new());
        let writer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.push([1; EVENT_WORDS]);
                ring.push([2; EVENT_WORDS]);
            })
        };
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        reader.drain(&ring, |event| seen.push(event[0]));
        writer.join().unwrap();
        reader.drain(&ring, |event| seen.push(event[0]));
        assert_eq!(seen, [1, 2]);
        assert_eq!(reader.lost, 0);
    });
}

/// Fails if `Queue::sleep` reads the number of changes after it has looked at the slot, if
/// `QueueReader::drain` does not announce room, or if `Queue::turn` takes a slot that is written.
#[test]
fn writers_wait_for_room_and_no_event_is_lost() {
    model(2, || {
        let queue = Arc::new(Queue::new());
        let mut reader = QueueReader::open(&queue).unwrap();
        let writers = [1, 2].map(|number| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                for event in 0..3 - number {
                    let event = [number * 10 + event; EVENT_WORDS];
                    assert_eq!(queue.push(event, true), Pushed::Written);
                }
            })
        });
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let changes = queue.work.changes();
            reader.drain(&queue, |event| {
                assert_eq!(event, [event[0]; EVENT_WORDS], "torn");
                seen.push(event[0]);
            });
            if seen.len() < 3 && reader.unwritten() == 0 {
                queue.work.wait(changes, Duration::ZERO);
            } else {
                thread::yield_now();
            }
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let first = seen.iter().position(|event| *event == 10);
        let second = seen.iter().position(|event| *event == 11);
        assert!(first < second, "a thread's events are in order");
        seen.sort_unstable();
        assert_eq!(seen, [10, 11, 20]);
    });
}

/// Fails if `QueueReader::close` does not wake the writers that wait.
#[test]
fn a_writer_leaves_a_closed_queue() {
    model(3, || {
        let queue = Arc::new(Queue::new());
        let reader = QueueReader::open(&queue).unwrap();
        let writer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..3).map(|_| queue.push([7; EVENT_WORDS], true)).last())
        };
        reader.close(&queue);
        assert_eq!(writer.join().unwrap(), Some(Pushed::Closed));
        let mut reader = QueueReader::open(&queue).unwrap();
        assert_eq!(queue.push([8; EVENT_WORDS], false), Pushed::Full);
        reader.drain(&queue, |event| panic!("{event:?} is the former reader's"));
        assert_eq!(queue.push([9; EVENT_WORDS], true), Pushed::Written);
        let mut seen = Vec::new();
        reader.drain(&queue, |event| seen.push(event[0]));
        assert_eq!(seen, [9]);
    });
}
