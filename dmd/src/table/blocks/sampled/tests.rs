//! The compact table beside the tree: both together find every block.

use std::collections::BTreeMap;

use super::entry::{Entry, Name};
use super::levels::{BUCKET, LEVELS};
use super::*;
use crate::mem::sync::Ordering::Relaxed;
use crate::mem::sys::shortage;
use crate::sample::rate::SamplingRate;
use crate::table::epoch::Epoch;
use crate::table::packed_block::{SiteId, Tombstone};

const GLIBC: Granule = Granule::OF_32;
const BASE: usize = if cfg!(miri) { 0x2000_0000 } else { 0x7f00_0000_0000 };
const SPAN: usize = 1 << SPAN_BITS;

/// The entries that the buckets of one span have.
const OF_SPAN: usize = BUCKET * LEVELS;

fn block(requested: usize) -> Block {
    let (site, rate) = (SiteId::from_number(7), SamplingRate::EVERY);
    Block { requested, usable: requested + 8, site, epoch: Epoch::FIRST, rate, time: 0 }
}

fn all(blocks: &Blocks) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    blocks.for_each(GLIBC, |live| found.push((live.start, live.block.requested)));
    found
}

fn enclosing(blocks: &Blocks, address: usize) -> Option<usize> {
    blocks.enclosing(GLIBC, address).map(|found| found.start)
}

/// Returns the pages that the table has touched for sampled blocks.
fn touched_bytes(blocks: &Blocks) -> usize {
    let levels = &blocks.sampled.levels;
    levels.mapped_bytes() - levels.untouched_bytes()
}

/// A stream of random numbers (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }
}

/// Inserts as the hooks do. Returns whether the compact table has the block.
fn insert(blocks: &Blocks, address: usize, new: Block) -> bool {
    let is_in_compact = blocks.insert_sampled(GLIBC, address, new);
    if !is_in_compact {
        blocks.insert(GLIBC, address, new);
    }
    is_in_compact
}

/// The blocks of a random test, by their places: each place has 4 spans of addresses.
fn compare(blocks: &Blocks, model: &BTreeMap<usize, usize>, random: &mut Random) {
    let expected: Vec<_> = model.iter().map(|(start, size)| (*start, *size)).collect();
    assert_eq!(all(blocks), expected);
    for (&start, &size) in model {
        assert_eq!(blocks.starting_at(GLIBC, start).map(|found| found.block.requested), Some(size));
        let inside = start + random.below(size + 8);
        assert_eq!(enclosing(blocks, inside), Some(start), "{start:x} {size} {inside:x}");
        assert_eq!(enclosing(blocks, start + size + 8), None);
    }
}

#[test]
fn blocks_are_found_as_in_a_map_whichever_table_they_are_in() {
    const TURNS: usize = if cfg!(miri) { 300 } else { 40_000 };
    const PLACES: usize = 300;
    let blocks = Box::new(Blocks::new());
    let (mut model, mut random) = (BTreeMap::new(), Random(88_172_645_463_325_252));
    let mut in_compact = 0;
    for turn in 0..TURNS {
        let place = BASE + random.below(PLACES) * 4 * SPAN;
        // At most a few kilobytes, or across some spans.
        let size =
            16 + if random.below(4) == 0 { random.below(3 * SPAN) } else { random.below(4000) };
        let previous = model.range(place..place + 4 * SPAN).next().map(|(start, _)| *start);
        if let Some(start) = previous {
            let size = model.remove(&start).unwrap();
            assert_eq!(blocks.remove(GLIBC, start), Some(block(size)), "{turn}");
            assert_eq!(blocks.remove(GLIBC, start), None, "{turn}");
        } else {
            let start = place + random.below(SPAN / 64) * 32 + 16;
            if random.below(3) == 0 {
                blocks.insert(GLIBC, start, block(size));
            } else {
                in_compact += usize::from(insert(&blocks, start, block(size)));
            }
            model.insert(start, size);
        }
        if turn % (TURNS / 20) == 0 {
            compare(&blocks, &model, &mut random);
        }
    }
    assert!(in_compact > TURNS / 5, "{in_compact}");
    for (start, size) in model {
        assert_eq!(blocks.remove(GLIBC, start), Some(block(size)));
    }
    assert!(all(&blocks).is_empty());
    assert_eq!(blocks.sampled.levels.entries().count(), 0, "no overlap stays");
}

#[test]
#[cfg_attr(miri, ignore = "too many blocks")]
fn memory_is_that_of_the_live_sample_however_many_blocks_there_were() {
    const LIVE: usize = 500;
    const SPANS: usize = 256;
    let blocks = Box::new(Blocks::new());
    let (mut live, mut random) = (vec![0; LIVE], Random(362_436_069));
    for turn in 0..200_000 {
        let place = &mut live[turn % LIVE];
        if *place != 0 {
            assert!(blocks.remove(GLIBC, *place).is_some());
        }
        // Each has a granule of its own among all that there are.
        *place = BASE + (random.below(SPANS * SPAN / 32 / LIVE) * LIVE + turn % LIVE) * 32 + 16;
        assert!(insert(&blocks, *place, block(24)), "{turn}");
    }
    assert_eq!(blocks.leaves(GLIBC).count(), 0);
    // The first level has 32 KiB, the second one 128.
    assert!(touched_bytes(&blocks) <= 160 << 10, "{}", touched_bytes(&blocks));
    let mapped = blocks.sampled.levels.mapped_bytes();
    assert_eq!(blocks.untouched_bytes(GLIBC), mapped - touched_bytes(&blocks));
}

#[test]
fn blocks_that_find_their_buckets_full_are_in_the_tree() {
    let blocks = Box::new(Blocks::new());
    let start = |index| BASE + 0x1000 + index * 64;
    for index in 0..OF_SPAN + 10 {
        assert_eq!(insert(&blocks, start(index), block(24)), index < OF_SPAN, "{index}");
    }
    let expected: Vec<_> = (0..OF_SPAN + 10).map(|index| (start(index), 24)).collect();
    assert_eq!(all(&blocks), expected);
    // A block that extends into that span has no place for its overlap there, and leaves none in
    // the span before.
    let (across, size) = (BASE - SPAN - 64, SPAN + 64 + 0x800);
    assert!(!insert(&blocks, across, block(size)));
    assert_eq!(enclosing(&blocks, BASE - SPAN), Some(across));
    assert_eq!(blocks.sampled.levels.entries().count(), OF_SPAN);
    for index in 0..OF_SPAN + 10 {
        assert_eq!(blocks.remove(GLIBC, start(index)), Some(block(24)));
    }
    assert_eq!(blocks.remove(GLIBC, across), Some(block(size)));
    assert!(insert(&blocks, across, block(size)));
    assert_eq!(enclosing(&blocks, BASE), Some(across));
}

#[test]
fn large_and_huge_blocks_are_found_from_their_far_end() {
    for spans in [0, 1, HUGE_SPANS, HUGE_SPANS + 1, 16 << 10] {
        let blocks = Box::new(Blocks::new());
        let (start, size) = (BASE + SPAN - 0x10, spans * SPAN + 0x20);
        assert!(insert(&blocks, start, block(size)), "{spans}");
        assert_eq!(enclosing(&blocks, start + size + 7), Some(start), "{spans}");
        assert_eq!(enclosing(&blocks, start + size + 8), None, "{spans}");
        assert!(blocks.sampled.levels.entries().count() <= HUGE_SPANS + 1, "{spans}");
        assert_eq!(blocks.leaves(GLIBC).count(), 0);
        assert_eq!(blocks.remove(GLIBC, start), Some(block(size)));
        assert_eq!(enclosing(&blocks, start + size), None);
        assert_eq!(blocks.sampled.levels.entries().count(), 0);
    }
}

#[test]
fn a_sampled_block_is_no_small_block_of_the_tree() {
    let blocks = Box::new(Blocks::new());
    assert!(!blocks.may_hold(GLIBC, BASE));
    assert!(insert(&blocks, BASE, block(100)));
    assert!(blocks.may_hold(GLIBC, BASE) && blocks.may_hold_sampled(BASE));
    assert_eq!(blocks.remove_small(GLIBC, BASE), None);
    assert!(blocks.find_small(GLIBC, BASE, 100).is_none());
    assert_eq!(blocks.starting_at(GLIBC, BASE).map(|found| found.block), Some(block(100)));
    assert_eq!(blocks.remove(GLIBC, BASE), Some(block(100)));
    assert!(!blocks.may_hold(GLIBC, BASE));
}

#[test]
fn a_sampled_block_leaves_a_tombstone_while_allocations_are_observed() {
    let blocks = Box::new(Blocks::new());
    assert!(insert(&blocks, BASE, block(100)));
    assert_eq!(blocks.tombstone_at(GLIBC, BASE), None);
    assert_eq!(blocks.remove_leaving_tombstone(GLIBC, BASE), Some(block(100)));
    assert_eq!(blocks.tombstone_at(GLIBC, BASE + 50), Some(Tombstone::Freed));
    assert_eq!(blocks.remove_leaving_tombstone(GLIBC, BASE), None);
    blocks.insert(GLIBC, BASE, block(24));
    assert_eq!(blocks.tombstone_at(GLIBC, BASE), None);
}

#[test]
fn without_memory_a_sampled_block_is_lost_and_counted() {
    let blocks = Box::new(Blocks::new());
    shortage::run(|| assert!(!insert(&blocks, BASE, block(100))));
    shortage::run(|| assert!(!insert(&blocks, BASE, block(SPAN))));
    assert_eq!((blocks.lost(), all(&blocks)), (2, vec![]));
    assert!(!insert(&blocks, sys::ADDRESS_END, block(100)));
    assert_eq!(blocks.lost(), 3);
}

#[test]
fn an_entry_whose_owner_ended_with_a_fork_hides_no_block() {
    let blocks = Box::new(Blocks::new());
    assert!(insert(&blocks, BASE, block(100)));
    let entry = blocks.sampled.levels.entries().next().expect("it was inserted");
    // In the child: the thread that removed the block has cleared its word only.
    entry.replace_word(entry.word(), 0);
    assert!(all(&blocks).is_empty() && blocks.starting_at(GLIBC, BASE).is_none());
    assert!(insert(&blocks, BASE, block(200)));
    assert_eq!(all(&blocks), [(BASE, 200)]);
    assert_eq!(enclosing(&blocks, BASE + 150), Some(BASE));
    assert_eq!(blocks.remove(GLIBC, BASE), Some(block(200)));
    assert_eq!(blocks.remove(GLIBC, BASE), None);
}

#[test]
fn a_reader_takes_no_word_of_another_block_in_the_entry() {
    let blocks = Box::new(Blocks::new());
    assert!(insert(&blocks, BASE, block(100)));
    let entry: Entry = blocks.sampled.levels.entries().next().expect("it was inserted");
    assert_eq!(entry.name(), Name::block(BASE));
    assert_ne!(entry.word(), 0);
    blocks.remove(GLIBC, BASE);
    assert_eq!(entry.word(), 0);
    assert!(insert(&blocks, BASE, block(200)));
    assert_eq!(entry.word(), 0, "the same address, but another use");
}

#[test]
fn only_sampled_blocks_of_the_reused_epoch_are_aged() {
    let blocks = Box::new(Blocks::new());
    let second = Epoch::FIRST.next();
    insert(&blocks, 0x1000, block(24));
    insert(&blocks, 0x2000, Block { epoch: second, ..block(SPAN) });
    blocks.age(GLIBC, Epoch::FIRST, |_| {});
    let mut epochs = Vec::new();
    blocks.for_each(GLIBC, |found| epochs.push(found.block.epoch));
    assert_eq!(epochs, [Epoch::from_number(0), second]);
    assert_eq!(enclosing(&blocks, 0x2000 + SPAN), Some(0x2000), "its overlap is no block");
}

#[test]
fn threads_in_the_same_buckets_find_their_own_blocks() {
    let blocks = Box::new(Blocks::new());
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let (old, turns) = (Epoch::FIRST, if cfg!(miri) { 50 } else { 20_000 });
    std::thread::scope(|scope| {
        let blocks = &blocks;
        let reader = scope.spawn(|| {
            while !is_done.load(Relaxed) {
                blocks.age(GLIBC, old, |_| {});
                let found = all(blocks);
                assert!(found.is_sorted_by(|one, next| one.0 < next.0), "{found:?}");
                for (start, size) in found {
                    assert_eq!((start - BASE) / 1024, size / 1024 - 1, "{start:x} {size}");
                }
            }
        });
        let owners: Vec<_> = (0..3_usize)
            .map(|thread| {
                scope.spawn(move || {
                    for turn in 0..turns {
                        // More than one level has entries for. The size follows from the address.
                        for index in 0..6 {
                            let start = BASE + thread * 1024 + index * 64;
                            insert(blocks, start, block((thread + 1) * 1024 + turn % 1024));
                        }
                        for index in 0..6 {
                            let start = BASE + thread * 1024 + index * 64;
                            let removed = blocks.remove(GLIBC, start).map(|block| block.requested);
                            assert_eq!(removed, Some((thread + 1) * 1024 + turn % 1024));
                        }
                    }
                })
            })
            .collect();
        owners.into_iter().for_each(|owner| owner.join().unwrap());
        is_done.store(true, Relaxed);
        reader.join().unwrap();
    });
    assert!(all(&blocks).is_empty());
}
