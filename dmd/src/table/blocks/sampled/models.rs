//! Loom models of the compact table. Each also runs with a planted defect, and must fail then.

use std::sync::Arc;

use loom::thread;

use super::super::{Blocks, Granule, LiveBlock};
use super::entry::{Entry, Name};
use super::levels::Levels;
use crate::mem::models::model;
use crate::mem::sync::Ordering::{Acquire, Release};
use crate::sample::rate::SamplingRate;
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, SiteId};

/// Returns the word of the block at this address.
fn word_of(address: usize) -> u64 {
    address as u64 * 2 + 1
}

fn insert(levels: &Levels, address: usize) {
    assert!(levels.insert(0, Name::block(address), word_of(address)));
}

fn find(levels: &Levels, address: usize) -> Entry {
    levels.entries_of(0, Name::block(address)).next().expect("no block is lost")
}

/// One thread removes a block while two others insert blocks into the same bucket.
fn owners_of_a_bucket(clear: fn(Entry)) {
    let levels = Arc::new(Levels::new());
    insert(&levels, 32);
    let run = |work: fn(&Levels, fn(Entry))| {
        let levels = Arc::clone(&levels);
        thread::spawn(move || work(&levels, clear))
    };
    let removes = run(|levels, clear| clear(find(levels, 32)));
    let inserts = run(|levels, _| {
        insert(levels, 64);
        assert_eq!(find(levels, 64).word(), word_of(64));
    });
    insert(&levels, 96);
    assert_eq!(find(&levels, 96).word(), word_of(96));
    removes.join().unwrap();
    inserts.join().unwrap();
    let mut found: Vec<_> = levels.entries().map(|entry| entry.name()).collect();
    found.sort_by_key(|name| name.block_address());
    assert_eq!(found, [64, 96].map(Name::block));
    assert_eq!([64, 96].map(|address| find(&levels, address).word()), [64, 96].map(word_of));
}

/// One thread replaces a block by others in the same entry while another one reads it.
fn a_reader_beside_the_owner(read: fn(Entry) -> u64) {
    let levels = Arc::new(Levels::new());
    insert(&levels, 32);
    let other = {
        let levels = Arc::clone(&levels);
        thread::spawn(move || {
            find(&levels, 32).clear();
            insert(&levels, 64);
            find(&levels, 64).clear();
            insert(&levels, 32);
        })
    };
    for entry in levels.entries() {
        let (name, word) = (entry.name(), read(entry));
        assert!(word == 0 || Some(word) == name.block_address().map(word_of), "{name:?} {word}");
    }
    other.join().unwrap();
    assert_eq!(find(&levels, 32).word(), word_of(32));
}

/// Frees an entry in the wrong order: the next owner's word is cleared.
fn clear_the_key_first(entry: Entry) {
    let [key, word] = entry.words;
    key.store(entry.key >> 48 << 48, Release);
    word.store(0, Release);
}

/// Reads a word without a second look at the key: it may be another block's.
fn read_without_a_second_look(entry: Entry) -> u64 {
    entry.words[1].load(Acquire)
}

/// Also fails if `Entry::insert` claims an entry by a store, or by a relaxed exchange.
#[test]
fn owners_of_a_bucket_lose_no_block() {
    model(3, || owners_of_a_bucket(Entry::clear));
}

#[test]
#[should_panic = "assertion `left == right` failed"]
fn planted_the_key_is_cleared_first() {
    model(3, || owners_of_a_bucket(clear_the_key_first));
}

/// Also fails if `Entry::insert` keeps the version, and if the word is stored or loaded relaxed.
#[test]
fn a_reader_never_takes_the_word_of_another_block() {
    model(3, || a_reader_beside_the_owner(Entry::word));
}

#[test]
#[should_panic = "Name("]
fn planted_the_key_is_read_once() {
    model(3, || a_reader_beside_the_owner(read_without_a_second_look));
}

const GRANULE: Granule = Granule::OF_32;

/// Returns a block with a record, whose sizes follow from its time.
fn timed(time: u64) -> Block {
    let size = usize::try_from(time).unwrap();
    let (site, rate) = (SiteId::from_number(1), SamplingRate::EVERY);
    Block { requested: size, usable: 2 * size, site, epoch: Epoch::FIRST, rate, time }
}

/// Fails if `Blocks::remove_sampled` frees the record before it clears the entry.
#[test]
fn a_reader_of_both_tables_sees_a_consistent_block_or_none() {
    model(2, || {
        let blocks = Arc::new(Blocks::new());
        assert!(blocks.insert_sampled(GRANULE, 32, timed(1)));
        let owner = {
            let blocks = Arc::clone(&blocks);
            thread::spawn(move || {
                assert_eq!(blocks.remove(GRANULE, 32), Some(timed(1)));
                assert!(blocks.insert_sampled(GRANULE, 96, timed(3)));
            })
        };
        let mut seen = 0;
        blocks.for_each(GRANULE, |LiveBlock { start, block, .. }| {
            seen += 1;
            assert_eq!(block, timed(if start == 32 { 1 } else { 3 }));
        });
        assert!(seen <= 1);
        owner.join().unwrap();
        assert_eq!(blocks.starting_at(GRANULE, 96).map(|found| found.block), Some(timed(3)));
        assert!(blocks.starting_at(GRANULE, 32).is_none());
    });
}
