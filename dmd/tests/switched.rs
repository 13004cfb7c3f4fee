//! Tests a program whose tracking changes between a profile, every block, and off.

use std::hint::black_box;
use std::num::NonZeroU64;

use dmd::{Dump, Mode, Options, allocation_site_of};

dmd::global_allocator!();

const SIZE: usize = 50_001;
const COUNT: usize = 1500;

fn profile() {
    let bytes = NonZeroU64::new(256 << 10).expect("it is not zero");
    dmd::start(Options::default().mode(Mode::Profile).sample_bytes(bytes)).expect("it can start");
}

fn blocks() -> Vec<Vec<u8>> {
    (0..COUNT).map(|_| black_box(vec![1_u8; SIZE])).collect()
}

/// Returns whether the table has the block, found from the inside.
fn is_sampled(block: &[u8]) -> bool {
    allocation_site_of(&raw const block[SIZE - 1]).is_ok()
}

fn sampled(blocks: &[Vec<u8>]) -> usize {
    blocks.iter().filter(|block| is_sampled(block)).count()
}

/// Returns the number of blocks of this size in a dump.
fn in_dump() -> usize {
    let snapshot = memreport::snapshot();
    let sizes = Dump::of(&snapshot).expect("DMD is awake").by_requested_size();
    sizes.get(&SIZE).map_or(0, |sum| sum.blocks)
}

#[test]
fn sampled_blocks_are_found_and_removed_in_every_later_mode() {
    profile();
    let mut kept = blocks();
    let count = sampled(&kept);
    // 17 % of them.
    assert!((COUNT / 10..COUNT / 4).contains(&count), "{count}");
    assert_eq!(in_dump(), count);

    // Every block is tracked: the sampled ones stay, and a free of one removes it.
    dmd::start(Options::default()).expect("it can start");
    assert_eq!((sampled(&kept), in_dump()), (count, count));
    let rest = kept.split_off(COUNT / 4);
    drop(kept);
    let mut kept = rest;
    let count = sampled(&kept);
    assert_eq!(in_dump(), count);
    let more = blocks();
    assert_eq!((sampled(&more), in_dump()), (COUNT, count + COUNT));

    // Off: blocks are only removed.
    dmd::stop();
    let rest = kept.split_off(COUNT / 4);
    drop(kept);
    let mut kept = rest;
    let count = sampled(&kept);
    assert_eq!(in_dump(), count + COUNT);

    // A profile again, in a table that also has blocks of the time when all were tracked.
    profile();
    let again = blocks();
    let count_again = sampled(&again);
    assert!((COUNT / 10..COUNT / 4).contains(&count_again), "{count_again}");
    assert_eq!(in_dump(), count + COUNT + count_again);
    drop(more);
    assert_eq!(in_dump(), count + count_again);

    // Single blocks are moved, and observed.
    for block in &mut kept {
        block.reserve_exact(SIZE);
        block.shrink_to(SIZE);
    }
    let count = sampled(&kept);
    let observer = dmd::observe::Observer::start().expect("there is a rate");
    drop(kept);
    assert_eq!(in_dump(), count_again, "{count} blocks had moved");
    drop(again);
    assert_eq!(in_dump(), 0);
    drop(observer);
}
