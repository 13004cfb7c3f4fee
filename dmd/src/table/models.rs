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

const GRANULE: Granule = Granule::of_spacing(32);

/// Returns a block that needs a record, with sizes that follow from its site.
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

/// Fails if `Blocks::remove` frees the record before it clears the word, if `Blocks::read` does not
/// read the word a second time, or if a record is written or freed with relaxed stores.
#[test]
fn a_reader_sees_a_consistent_block_or_none() {
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
        blocks.for_each(GRANULE, |LiveBlock { start, block, .. }| {
            seen += 1;
            assert_eq!((start, block), (32, big(block.requested, Epoch::FIRST)));
        });
        assert!(seen <= 1);
        owner.join().unwrap();
        assert_eq!(blocks.starting_at(GRANULE, 32).map(|found| found.block.requested), Some(2));
    });
}
