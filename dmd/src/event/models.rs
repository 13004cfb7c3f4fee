//! Loom models of the ring of events. See `mem::models` for how to run them.

use std::sync::Arc;

use loom::thread;

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
