//! Loom models of the table of blocks and of its records.
//!
//! Ageing has no model, since loom lets a compare-and-exchange succeed on a stale value. Its test
//! is in `blocks/tests.rs`.

use std::sync::Arc;

use loom::thread;

use super::blocks::{Blocks, Granule, LiveBlock};
use super::epoch::Epoch;
use super::packed_block::{Block, SiteId};
use super::records::{Record, Records};
use crate::mem::models::model;
use crate::sample::rate::SamplingRate;

/// Fails if the head of the free list has no version counter.
#[test]
fn no_record_has_two_owners() {
    model(3, || {
        let records = Arc::new(Records::new());
        let sized = |size: usize| Record { requested: size, usable: size + 1, time: 5 };
        let numbers = [1, 2].map(|size| records.insert(sized(size)).unwrap());
        numbers.into_iter().for_each(|record| records.free(record));
        let own = move |records: &Records, size| {
            let record = records.insert(sized(size)).unwrap();
            assert_eq!(records.get(record), sized(size));
            record
        };
        let other = {
            let records = Arc::clone(&records);
            thread::spawn(move || {
                let first = own(&records, 10);
                let second = own(&records, 20);
                records.free(first);
                own(&records, 30);
                assert_eq!(records.get(second), sized(20));
            })
        };
        own(&records, 40);
        other.join().unwrap();
    });
}

const GRANULE: Granule = Granule::OF_32;

/// Returns a block that needs a record, with sizes that follow from its time. The words of all
/// these blocks are alike, if their records have the same number.
fn timed(time: u64) -> Block {
    let size = usize::try_from(time).unwrap();
    let (site, rate) = (SiteId::from_number(1), SamplingRate::EVERY);
    Block { requested: size, usable: 2 * size, site, epoch: Epoch::FIRST, rate, time }
}

/// Fails if `Records::read` does not compare the sequence numbers, or calls `is_current` after the
/// second one; if `Blocks::remove` frees the record before it clears the word; or if
/// `Records::insert` stores a word relaxed.
#[test]
fn a_reader_sees_a_consistent_block_or_none() {
    model(3, || {
        let blocks = Arc::new(Blocks::new());
        blocks.insert(GRANULE, 32, timed(1));
        let packed = |blocks: &Blocks| blocks.starting_at(GRANULE, 32).unwrap().packed;
        let first = packed(&blocks);
        let owner = {
            let blocks = Arc::clone(&blocks);
            thread::spawn(move || {
                assert_eq!(blocks.remove(GRANULE, 32), Some(timed(1)));
                blocks.insert(GRANULE, 32, timed(2));
            })
        };
        let mut seen = 0;
        blocks.for_each(GRANULE, |LiveBlock { start, block, .. }| {
            seen += 1;
            assert_eq!((start, block), (32, timed(block.time)));
        });
        assert!(seen <= 1);
        owner.join().unwrap();
        assert_eq!(blocks.starting_at(GRANULE, 32).map(|found| found.block), Some(timed(2)));
        assert_eq!(packed(&blocks), first, "both blocks have the same word");
    });
}

/// Fails if `Records::read` does not call `is_current`, or calls it before it loads the first
/// sequence number or after the second one.
#[test]
fn a_reader_never_takes_the_record_of_another_block() {
    model(3, || {
        let blocks = Arc::new(Blocks::new());
        blocks.insert(GRANULE, 32, timed(1));
        let owner = {
            let blocks = Arc::clone(&blocks);
            thread::spawn(move || {
                // The block at 96 has the record for a while.
                blocks.remove(GRANULE, 32);
                blocks.insert(GRANULE, 96, timed(3));
                blocks.remove(GRANULE, 96);
                blocks.insert(GRANULE, 32, timed(2));
            })
        };
        if let Some(LiveBlock { block, .. }) = blocks.starting_at(GRANULE, 32) {
            assert!(block == timed(1) || block == timed(2), "{block:?}");
        }
        owner.join().unwrap();
    });
}
