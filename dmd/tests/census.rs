//! A symbolicated census of the running program: it has all live blocks, and none of its own.

use dmd::census::{Breakdown, Counted, take_symbolicated};
use memreport_analysis::heap::Frames;

dmd::global_allocator!();

#[inline(never)]
fn kept() -> Vec<Box<[u8]>> {
    (0..1000).map(|_| vec![1; 4000].into()).collect()
}

#[test]
fn a_program_counts_itself_by_type_and_function() {
    let breakdown = Breakdown::of_words("type,stack:1").unwrap();
    dmd::start("--mode=live".parse().unwrap()).unwrap();
    let blocks = kept();
    let take = || take_symbolicated(&breakdown, Frames::Own).unwrap().unwrap();
    let census = take();
    let Counted::Groups(types) = &census.root().counted else { panic!("{census:?}") };
    let bytes = types.iter().find(|group| group.key.describe() == "[u8]").expect("it is told");
    let Counted::Groups(stacks) = &bytes.node.counted else { panic!("{bytes:?}") };
    let (frame, amount) = (stacks[0].key.describe(), stacks[0].node.amount);
    assert!(frame.contains("kept"), "{frame}");
    // glibc gives 4,008 bytes for 4,000.
    assert_eq!((amount.count, amount.bytes), (1000, 4_008_000));
    // Symbolication takes megabytes, which are the tracker's own.
    let all = census.root().amount.bytes;
    assert!((take().root().amount.bytes - all).abs() < 100_000, "{all}");
    drop(blocks);
}
