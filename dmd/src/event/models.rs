//! What threads share, under every interleaving that loom can think of.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p dmd --lib -- models`. Each model names the change of two lines, or of one
//! ordering, that it was seen to fail with. Ageing has no model: loom lets a compare and exchange succeed on a value that is
//! no longer the last; its test is in `blocks`.

use std::sync::Arc;

use loom::thread;

use super::ring::{Found, Reader, Ring, WORDS};
use crate::mem::interner::Interner;
use crate::mem::pages::Lazy;
use crate::mem::sync::AtomicU64;
use crate::mem::sync::Ordering::Relaxed;
use crate::sample::rate::SamplingRate;
use crate::table::blocks::{Blocks, Granule};
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, SiteId};
use crate::table::records::{Record, Records};

/// Tries all interleavings with at most this many switches of threads that are not at their end.
fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// Fails if `Lazy::make` publishes with a plain store instead of a compare and exchange.
#[test]
fn a_slice_is_made_once() {
    model(4, || {
        let lazy = Arc::new(Lazy::<AtomicU64>::new());
        let add = |lazy: &Lazy<AtomicU64>| {
            lazy.get_or_make(2).map(|slice| slice[1].fetch_add(1, Relaxed))
        };
        let other = {
            let lazy = Arc::clone(&lazy);
            thread::spawn(move || add(&lazy))
        };
        add(&lazy);
        other.join().unwrap();
        assert_eq!(lazy.get(2).unwrap()[1].load(Relaxed), 2);
    });
}

/// Fails if the head of the free list does not count the visits of those who take and give back.
#[test]
fn no_record_has_two_owners() {
    model(3, || {
        let records = Arc::new(Records::new());
        let sized = |size: usize| Record { requested: size, usable: size + 1, time: 5 };
        let kept = [1, 2].map(|size| records.keep(sized(size)).unwrap());
        kept.into_iter().for_each(|record| records.release(record));
        let own = move |records: &Records, size| {
            let record = records.keep(sized(size)).unwrap();
            assert_eq!(records.get(record), sized(size));
            record
        };
        let other = {
            let records = Arc::clone(&records);
            thread::spawn(move || {
                let first = own(&records, 10);
                let second = own(&records, 20);
                records.release(first);
                own(&records, 30);
                assert_eq!(records.get(second), sized(20));
            })
        };
        own(&records, 40);
        other.join().unwrap();
    });
}

const GRANULE: Granule = Granule::of_spacing(32);

/// A block whose sizes follow from its site, and need a record.
fn big(site: usize, epoch: Epoch) -> Block {
    let site_id = SiteId::from_number(u32::try_from(site).unwrap());
    let time = site as u64;
    Block {
        requested: site,
        usable: 1100 * site,
        site: site_id,
        epoch,
        rate: SamplingRate::EVERY,
        time,
    }
}

/// Fails if `Blocks::remove` releases the record before it clears the word, or if a reader does not look at the word once
/// more, or if a record is kept or released with a relaxed store.
#[test]
fn a_reader_sees_a_whole_block_or_none() {
    model(3, || {
        let blocks = Arc::new(Blocks::new());
        blocks.insert(GRANULE, 32, big(1, Epoch::FIRST));
        let owner = {
            let blocks = Arc::clone(&blocks);
            thread::spawn(move || {
                assert_eq!(blocks.remove(GRANULE, 32), Some(big(1, Epoch::FIRST)));
                blocks.insert(GRANULE, 32, big(2, Epoch::FIRST));
            })
        };
        let mut seen = 0;
        blocks.for_each(GRANULE, |address, block, _| {
            seen += 1;
            assert_eq!((address, block), (32, big(block.requested, Epoch::FIRST)));
        });
        assert!(seen <= 1);
        owner.join().unwrap();
        assert_eq!(blocks.starting_at(GRANULE, 32).map(|(block, _)| block.requested), Some(2));
    });
}

/// Fails if `Interner::find` takes a number without comparing its pair.
#[test]
fn a_number_stands_for_its_pair_on_every_thread() {
    model(3, || {
        let interner = Arc::new(Interner::new(100));
        let all = |interner: &Interner, pairs: [(u64, u64); 2]| {
            for pair in pairs {
                let number = interner.intern(pair);
                assert_eq!(interner.get(number), Some(pair));
            }
        };
        let other = {
            let interner = Arc::clone(&interner);
            thread::spawn(move || all(&interner, [(0, 7), (1, 8)]))
        };
        all(&interner, [(1, 8), (0, 7)]);
        other.join().unwrap();
    });
}

/// Fails if `Reader::drain_newest` does not count what is older than the newest, or forgets those that were late.
#[test]
fn of_the_newest_all_are_read_or_lost() {
    model(2, || {
        let ring = Arc::new(Ring::new());
        let writers = [1, 2].map(|number| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.push([number; WORDS]);
                if number == 1 {
                    ring.push([3; WORDS]);
                }
            })
        });
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        let mut drain = |reader: &mut Reader, most| {
            let before = reader.lost;
            let (mut read, waiting) = (0, reader.waiting(&ring));
            reader.drain_newest(&ring, most, |event| {
                assert_eq!(event, [event[0]; WORDS], "torn");
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
        assert_eq!(reader.waiting(&ring), 0);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64 + reader.lost, 3, "each is read or lost, and none twice");
    });
}

/// Fails if `Ring::push` claims its slot with a plain store, leaves out its fence, or publishes with a relaxed store; and if
/// `Ring::at` does not look at the turn once more.
#[test]
fn an_event_is_read_whole_or_lost() {
    model(2, || {
        let ring = Arc::new(Ring::new());
        let other = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.push([1; WORDS]);
                ring.push([2; WORDS]);
            })
        };
        let last = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.push([3; WORDS]))
        };
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        let mut drain = |reader: &mut Reader| {
            reader.drain(&ring, |event| {
                assert_eq!(event, [event[0]; WORDS], "torn");
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
        assert_ne!(ring.at(2), Found::NotYet);
    });
}
