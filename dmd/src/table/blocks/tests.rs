//! The table of blocks: found by start and by inner addresses, aged while their owner works.

use super::*;
use crate::sample::rate::SamplingRate;
use crate::table::epoch::Epoch;
use crate::table::packed_block::SiteId;

const GLIBC: Granule = Granule::OF_32;

/// An address far from the beginning of the table.
const BASE: usize = if cfg!(miri) { 0x2000_0000 } else { 0x7f00_0000_0000 };

fn block(requested: usize, usable: usize) -> Block {
    Block {
        requested,
        usable,
        site: SiteId::from_number(7),
        epoch: Epoch::FIRST,
        rate: SamplingRate::EVERY,
        time: 0,
    }
}

fn all(blocks: &Blocks, granule: Granule) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    blocks.for_each(granule, |found_block| {
        found.push((found_block.start, found_block.block.requested));
    });
    found
}

#[test]
fn blocks_are_found_by_start_and_by_any_address_inside() {
    for granule in [GLIBC, Granule::OF_16, Granule::new(16, 8)] {
        let blocks = Box::new(Blocks::new());
        blocks.insert(granule, BASE + 0x0010_0010, block(20, 24));
        blocks.insert(granule, BASE + 0x0010_0040, block(100, 104));
        assert_eq!(blocks.starting_at(granule, BASE + 0x0010_0010).unwrap().block.requested, 20);
        assert!(blocks.starting_at(granule, BASE + 0x0010_0020).is_none());
        for inside in 1..granule.bytes() / 2 {
            let address = BASE + 0x0010_0010 + inside;
            assert!(blocks.starting_at(granule, address).is_none(), "{inside}");
            assert!(blocks.find_small(granule, address, 20).is_none(), "{inside}");
        }
        let enclosing = |address| blocks.enclosing(granule, address).map(|found| found.start);
        assert_eq!(enclosing(BASE + 0x0010_0027), Some(BASE + 0x0010_0010));
        assert_eq!(enclosing(BASE + 0x0010_0028), None);
        assert_eq!(enclosing(BASE + 0x0010_0040 + 103), Some(BASE + 0x0010_0040));
        assert_eq!(enclosing(BASE + 0x0010_0000), None);
        assert_eq!(all(&blocks, granule), [(BASE + 0x0010_0010, 20), (BASE + 0x0010_0040, 100)]);
        assert_eq!(blocks.remove(granule, BASE + 0x0010_0010), Some(block(20, 24)));
        assert_eq!(blocks.remove(granule, BASE + 0x0010_0010), None);
        assert_eq!(blocks.remove(granule, BASE + 0x0010_0050), None);
        assert_eq!(all(&blocks, granule), [(BASE + 0x0010_0040, 100)]);
    }
}

#[test]
fn a_huge_block_is_found_from_its_far_end() {
    for spans in [1, HUGE_SPANS, HUGE_SPANS + 1, 16 << 10] {
        is_found_from_its_far_end(spans);
    }
}

fn is_found_from_its_far_end(spans: usize) {
    let blocks = Box::new(Blocks::new());
    let (start, size) = (BASE + 0x10, spans << SPAN_BITS);
    blocks.insert(GLIBC, start, block(size, size + 4000));
    let enclosing =
        |address| blocks.enclosing(GLIBC, address).map(|found| (found.start, found.block.usable));
    assert_eq!(enclosing(start + size), Some((start, size + 4000)));
    assert_eq!(enclosing(start + size + 4000), None);
    assert!(blocks.leaves(GLIBC).count() <= HUGE_SPANS + 1, "{spans}");
    assert_eq!(blocks.remove(GLIBC, start), Some(block(size, size + 4000)));
    assert_eq!(enclosing(start + size), None);
    assert_eq!(enclosing(start), None);
}

#[test]
fn addresses_past_the_end_are_lost_and_counted() {
    let blocks = Box::new(Blocks::new());
    blocks.insert(GLIBC, sys::ADDRESS_END, block(1, 24));
    assert_eq!((blocks.lost(), blocks.remove(GLIBC, sys::ADDRESS_END)), (1, None));
}

#[test]
fn only_blocks_of_the_reused_epoch_are_aged() {
    let blocks = Box::new(Blocks::new());
    let second = Epoch::FIRST.next();
    blocks.insert(GLIBC, 0x1000, block(1, 24));
    blocks.insert(GLIBC, 0x2000, Block { epoch: second, ..block(2, 24) });
    blocks.age(GLIBC, Epoch::FIRST, |_| {});
    let mut epochs = Vec::new();
    blocks.for_each(GLIBC, |found| epochs.push(found.block.epoch));
    assert_eq!(epochs, [Epoch::from_number(0), second]);
}

#[test]
fn ageing_loses_the_race_against_the_owner() {
    let blocks = Box::new(Blocks::new());
    let (old, new) = (Epoch::FIRST, Epoch::FIRST.next());
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                blocks.age(GLIBC, old, |_| {});
            }
        });
        for turn in 0..if cfg!(miri) { 100 } else { 200_000 } {
            blocks.insert(GLIBC, 0x1000, Block { epoch: old, ..block(1, 24) });
            let taken = blocks.remove(GLIBC, 0x1000).map(|block| block.requested);
            assert_eq!(taken, Some(1), "{turn}");
            blocks.insert(GLIBC, 0x1000, Block { epoch: new, ..block(2, 24) });
            assert_eq!(blocks.remove(GLIBC, 0x1000).map(|block| block.epoch), Some(new), "{turn}");
        }
        is_done.store(true, Relaxed);
    });
    assert!(all(&blocks, GLIBC).is_empty());
}

#[test]
fn a_small_block_is_removed_with_its_size_and_others_are_left() {
    let blocks = Box::new(Blocks::new());
    let [small, large] = [BASE + 0x1000, BASE + 0x2000];
    let across = BASE + (1 << SPAN_BITS) - 0x20;
    blocks.insert(GLIBC, small, block(100, 104));
    blocks.insert(GLIBC, large, block(2 << 20, 2 << 20));
    blocks.insert(GLIBC, across, block(0x40, 0x48));
    assert_eq!(blocks.remove_small(GLIBC, small), Some(104));
    assert_eq!(blocks.remove_small(GLIBC, small), None);
    assert_eq!(blocks.remove_small(GLIBC, large), None);
    assert_eq!(blocks.remove_small(GLIBC, across), None);
    assert_eq!(all(&blocks, GLIBC), [(large, 2 << 20), (across, 0x40)]);
}

#[test]
fn a_block_is_removed_unseen_if_it_lies_in_one_span() {
    for granule in [GLIBC, Granule::OF_16] {
        let blocks = Box::new(Blocks::new());
        let span = BASE + (1 << SPAN_BITS);
        // A block that ends where the span ends counts as one that does not.
        for (start, usable, is_removed) in [
            (BASE + 0x1000, 104, true),
            (span - 0x80, 0x60, true),
            (span - 0x80, 0x80, false),
            (span - 0x20, 0x48, false),
        ] {
            blocks.insert(granule, start, block(usable - 8, usable));
            assert_eq!(blocks.remove_unseen(granule, start, usable), is_removed, "{start:x}");
            let rest = if is_removed { vec![] } else { vec![(start, usable - 8)] };
            assert_eq!(all(&blocks, granule), rest);
            blocks.remove(granule, start);
        }
        assert!(!blocks.remove_unseen(granule, BASE + (1 << TOP_SHIFT), 24), "no node");
        assert!(!blocks.remove_unseen(granule, sys::ADDRESS_END, 24), "no address");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a leaf fills no huge page there")]
fn pages_of_words_are_counted_one_by_one_or_as_a_huge_page() {
    let pages = sys::HUGE_PAGE / sys::PAGE;
    let mut huge = 0;
    for granule in [GLIBC, Granule::OF_16] {
        let blocks = Box::new(Blocks::new());
        // A block in each page of words, in three leaves: the last ones follow dense ones.
        let leaf_pages = granule.words() / WORDS_PER_PAGE;
        let start = |page: usize| BASE + page * WORDS_PER_PAGE * granule.bytes();
        let mut touched = 0;
        for page in 0..3 * leaf_pages {
            // At the second page of each huge one, since the sum takes a while.
            let before = (page % pages == 1).then(|| blocks.untouched_bytes(granule));
            blocks.insert(granule, start(page), block(100, 104));
            if let Some(before) = before {
                let now_touched = (before - blocks.untouched_bytes(granule)) / sys::PAGE;
                assert!(now_touched <= 1, "{page}: {now_touched}");
                huge += usize::from(now_touched == 0);
            }
            touched += 1;
        }
        let expected: Vec<_> = (0..touched).map(|page| (start(page), 100)).collect();
        assert_eq!(all(&blocks, granule), expected);
        let in_nodes = size_of::<Node>() - 3 * sys::PAGE;
        assert_eq!(blocks.untouched_bytes(granule), in_nodes, "all words are in use");
    }
    // Other tests may have made sparse leaves, and the kernel may have no huge page to grant.
    if huge == 0 {
        println!("not run: a huge page of words");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a leaf has less than three pages there")]
fn pages_of_leaves_without_blocks_are_not_resident() {
    let blocks = Box::new(Blocks::new());
    let words = GLIBC.words() * size_of::<u64>();
    let node = size_of::<Node>() - 3 * sys::PAGE;
    // The tables of other tests may have dense leaves, so that this one gets huge pages.
    let is_huge = |(_, leaf): (usize, MappedLeaf)| {
        leaf.words.chunks_exact(sys::HUGE_PAGE / size_of::<u64>()).any(sys::are_resident)
    };
    let expected = |pages: usize| {
        let touched = pages * sys::PAGE;
        node + words - if blocks.leaves(GLIBC).any(is_huge) { sys::HUGE_PAGE } else { touched }
    };
    assert_eq!(blocks.untouched_bytes(GLIBC), 0);
    blocks.insert(GLIBC, BASE, block(8, 24));
    blocks.insert(GLIBC, BASE + 0x40, block(8, 24));
    assert_eq!(blocks.untouched_bytes(GLIBC), expected(1));
    // The word of this block is on another page.
    blocks.insert(GLIBC, BASE + GLIBC.bytes() * WORDS_PER_PAGE, block(8, 24));
    assert_eq!(blocks.untouched_bytes(GLIBC), expected(2));
}
