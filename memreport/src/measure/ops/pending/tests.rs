//! Tests of blocks that wait.

use core::alloc::Layout;
use std::fmt::Write as _;

use super::*;
use crate::measure::measured::Measured;
use crate::measure::ops::{Collection, measure_with};
use crate::tracker::Tracker;
use crate::tracker::claim::{Block, CountedBlocks};
use crate::tracker::claim_batch::{ClaimBatch, NumberedRegion, QuickClaims};
use crate::tracker::claimant::RecentClaimants;
use crate::tracker::findings::Recording;
use crate::tracker::recorder::{Position, Recorder};
use crate::tracker::short_claim::{ClaimantBits, Region, RegionNumber, ShortClaim};
use crate::tracker::size_classes::SizeClasses;

/// A tracker of blocks with 8 bytes at each multiple of 8. The quick look-up finds the blocks
/// at multiples of 16.
#[derive(Clone, Copy, Default)]
struct Eights {
    /// The address from which on the table has no block; `None` if it has every block.
    gap: Option<usize>,
}

impl Eights {
    fn has(&self, address: usize) -> bool {
        self.gap.is_none_or(|gap| address < gap)
    }
}

impl Tracker for Eights {
    fn is_awake(&self) -> bool {
        true
    }

    fn tracks_every_block(&self) -> bool {
        self.gap.is_none()
    }

    fn state(&self) -> String {
        "a test".to_owned()
    }

    fn look_up(&self, claim: Claim) -> Found {
        if !self.has(claim.address) {
            return Found { bytes: 0, block: None, wrong: Some(Wrong::Untracked) };
        }
        let start = claim.address / 8 * 8;
        let block = Block { start, requested: 8, usable: 8, identity: 1 };
        Found { bytes: 8, block: Some(block), wrong: None }
    }

    fn exact_block(&self, start: usize, size: usize) -> Option<usize> {
        (start % 16 == 0 && size == 8 && self.has(start)).then_some(8)
    }

    fn entry_address(&self, _: usize) -> *const u8 {
        null()
    }

    fn begin(&self) -> Box<dyn Recording> {
        unreachable!("nothing is collected")
    }

    fn own_memory(&self, _: &mut dyn FnMut(&'static str, usize, &'static str)) {}
}

/// A recorder of claims of such blocks, which logs each claim's address, with `!` if the quick
/// look-up missed it, and with the sizes of a block that is claimed at once.
#[derive(Default)]
struct Log {
    table: Eights,
    claims: RefCell<String>,
    /// The starts of the blocks that were prefetched and not yet claimed.
    prefetched: RefCell<Vec<usize>>,
    /// True if it refuses claims of known blocks.
    is_strict: bool,
    /// Where claims are added without a call.
    quick: Option<(ClaimBatch, RecentClaimants)>,
}

impl Log {
    fn of(gap: Option<usize>) -> Self {
        Log { table: Eights { gap }, ..Log::default() }
    }

    /// With a gap, and with a place for claims of blocks in this region that take no call.
    fn with_gaps_and_quick(region: Region) -> Self {
        let (batch, claimants) = (ClaimBatch::new(), RecentClaimants::new());
        batch.insert_region(NumberedRegion::new(region, RegionNumber::ZERO, None));
        let bits = ClaimantBits::of(7).expect("it fits");
        claimants.insert(Claimant { reporter: 0, field: None }, bits);
        Log { quick: Some((batch, claimants)), ..Log::of(Some(4096)) }
    }

    /// Measures in a collection that this records.
    fn measured(&self, measure: impl for<'a> FnOnce(&'a (), &Ops<'a>)) -> Measured {
        let table = SizeSource::Table(Box::leak(Box::new(self.table)));
        measure_with(&Collection::new(table, Some(self)), &(), measure)
    }
}

impl Recorder for Log {
    fn claimed(&self, claim: Claim, _: Found, _: Claimant) {
        let _ = write!(self.claims.borrow_mut(), " {}!", claim.address);
    }

    fn quick_claims(&self) -> Option<QuickClaims<'_>> {
        let (batch, claimants) = self.quick.as_ref()?;
        Some(QuickClaims { batch, claimants })
    }

    fn claimed_expected(&self, blocks: ExpectedBlocks<'_>, _: u32) -> CountedBlocks {
        let starts = |blocks: &[ExpectedBlock]| -> Vec<usize> {
            blocks.iter().map(|block| block.start().addr()).collect()
        };
        let mut prefetched = self.prefetched.borrow_mut();
        prefetched.extend(starts(blocks.next));
        // Few blocks are not prefetched.
        let count = blocks.blocks.len().min(prefetched.len());
        let first: Vec<_> = prefetched.drain(..count).collect();
        assert!(count == 0 || first == starts(blocks.blocks), "prefetched before, and in order");
        drop(prefetched);
        blocks.look_up(|block| {
            let start = block.start().addr();
            if let Some(ExpectedSizes { requested, usable }) =
                block.known().filter(|_| !self.is_strict)
            {
                let _ = write!(self.claims.borrow_mut(), " {start}={requested:?}/{usable}");
                return Some(usable);
            }
            let found = self.table.exact_block(start, block.size())?;
            let _ = write!(self.claims.borrow_mut(), " {start}");
            Some(found)
        })
    }

    fn position(&self) -> Position {
        Position::default()
    }

    fn roll_back(&self, _: Position) {}
}

/// Adds the block of a box, which outlives the measurement.
fn expect_box(ops: &Ops<'_>, pending: &Pending, text: &[u8; 20]) {
    let query = SizeFrom::query(Layout::for_value(text));
    // SAFETY: the block is alive.
    unsafe { (ops.collection.claim_own_block)(ops, text.as_ptr(), text.len(), query, pending) };
}

fn at(address: usize) -> *const u8 {
    without_provenance(address)
}

#[test]
fn each_block_is_looked_up_once_after_it_was_prefetched() {
    let sizes = [0, 1, BATCH - 1, BATCH, BATCH + 1, RING - 1, RING, RING + 1, 5 * RING + 7];
    for count in sizes {
        let measured = Log::default().measured(|(), ops| {
            let pending = ops.pending.expect("a tracker answers");
            (0..count).for_each(|index| ops.expect_block(pending, at(16 * index), 8));
            // Nothing is left to add at the end, nor is anything added twice.
            assert_eq!(ops.bytes(), 8 * count);
        });
        assert_eq!((measured.bytes, measured.blocks), (8 * count, count));
    }
}

#[test]
fn claims_of_all_kinds_are_recorded_in_their_order() {
    let log = Log::default();
    let measured = log.measured(|(), ops| {
        let pending = ops.pending.expect("a tracker answers");
        ops.expect_block(pending, at(16), 8);
        ops.enclosing_block(at(33), 0);
        ops.block_by_words([41], |_, _| true);
        ops.expect_block(pending, at(24), 8);
        assert_eq!(*log.claims.borrow(), "", "they wait");
        ops.measure_borrowed(&(), |(), ops| ops.expect_block(pending, at(48), 8));
        assert_eq!(*log.claims.borrow(), " 16 32 41! 24! 48", "a borrow ends after its look-ups");
        ops.expect_block(pending, at(64), 8);
    });
    assert_eq!(*log.claims.borrow(), " 16 32 41! 24! 48 64");
    assert_eq!((measured.bytes, measured.blocks), (48, 6));
}

#[test]
fn blocks_are_counted_for_the_part_that_added_them() {
    let measured = Log::default().measured(|(), ops| {
        let pending = ops.pending.expect("a tracker answers");
        ops.expect_block(pending, at(16), 8);
        ops.part("part", "A part.", || ops.expect_block(pending, at(32), 8));
        ops.expect_block(pending, at(48), 8);
    });
    assert_eq!((measured.bytes, measured.part("part")), (24, 8));
}

#[test]
fn with_gaps_no_claim_waits() {
    let log = Log::of(Some(4096));
    let text = Box::new([0_u8; 20]);
    let start = text.as_ptr().addr();
    let measured = log.measured(|(), ops| {
        let pending = ops.pending.expect("a tracker answers");
        ops.enclosing_block(at(33), 0);
        assert_eq!(log.claims.take(), " 32");
        ops.block_by_words([41], |_, _| true);
        assert_eq!(log.claims.take(), " 41!");
        expect_box(ops, pending, &text);
        assert_eq!(log.claims.take(), format!(" {start}=Some(20)/20"));
        ops.expect_found_block(pending, 64, 24);
        assert_eq!(log.claims.take(), " 64=None/24");
    });
    assert_eq!((measured.bytes, measured.blocks), (8 + 8 + 20 + 24, 4));
}

#[test]
#[cfg_attr(miri, ignore = "blocks have the alignment of their types there, here 1")]
fn with_gaps_a_block_of_the_last_region_is_claimed_without_a_call() {
    let text = Box::new([0_u8; 20]);
    let region = Region::of(text.as_ptr().addr());
    let log = Log::with_gaps_and_quick(region);
    let measured = log.measured(|(), ops| {
        let pending = ops.pending.expect("a tracker answers");
        expect_box(ops, pending, &text);
        let other = region.first() + Region::BYTES;
        ops.expect_found_block(pending, other, 24);
    });
    assert_eq!((measured.bytes, measured.blocks), (20 + 24, 2));
    let words: Vec<_> = log.quick.iter().flat_map(|(batch, _)| batch.words()).collect();
    let [word] = words[..] else { panic!("{words:?}") };
    let short = ShortClaim::of_word(word.get(), region);
    assert_eq!((short.address(), short.claimant()), (text.as_ptr().addr() as u64, 7));
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[cfg_attr(miri, ignore = "its blocks have no such words")]
fn with_gaps_the_word_before_a_block_tells_its_size() {
    let text = Box::new([0_u8; 20]);
    let log = Log::with_gaps_and_quick(Region::of(text.as_ptr().addr()));
    let table = SizeSource::Table(Box::leak(Box::new(log.table)));
    let mut collection = Collection::new(table, Some(&log));
    // The tests' allocator is the system's, whatever is declared.
    assert!(crate::allocator::system::has_size_words());
    collection.claiming = Claiming::BySizeWord;
    collection.claim_own_block = Claiming::BySizeWord.of_own_block();
    let measured = measure_with(&collection, &(), |(), ops| {
        let pending = ops.pending.expect("a tracker answers");
        expect_box(ops, pending, &text);
        assert_eq!(*log.claims.borrow(), "", "it takes no call");
    });
    assert_eq!((measured.bytes, measured.blocks), (24, 1));
}

#[test]
fn a_block_in_a_gap_is_queried_if_its_owner_vouches_for_it() {
    let text = Box::new([0_u8; 20]);
    let add = |ops: &Ops<'_>| {
        let pending = ops.pending.expect("a tracker answers");
        ops.expect_block(pending, at(16), 8);
        ops.expect_block(pending, at(4096), 8);
        // Nobody knows its layout.
        ops.expect_found_block(pending, 8192, 24);
        expect_box(ops, pending, &text);
    };
    let log = || Log { is_strict: true, ..Log::of(Some(4096)) };
    let measured = log().measured(|(), ops| add(ops));
    assert_eq!((measured.bytes, measured.blocks, measured.computed), (8 + 8 + 24 + 20, 2, 8 + 24));
    // It was queried when it was added, so a panic changes nothing.
    let measured = log().measured(|(), ops| {
        let borrow = || {
            ops.measure_borrowed(&(), |(), ops| {
                add(ops);
                panic!("a reporter has a defect");
            });
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(borrow)).unwrap_err();
    });
    assert_eq!((measured.bytes, measured.blocks, measured.computed), (8 + 8 + 24 + 20, 2, 8 + 24));
}

#[test]
fn after_a_panic_no_block_is_queried_that_may_be_dead() {
    let queried = SizeFrom::query(Layout::new::<u64>());
    let collection = Collection::new(SizeSource::Layout, None);
    for (waiting, expected) in [(1, SizeFrom::Request), (0, queried)] {
        let pending = Pending::new();
        pending.blocks[0].size_from.set(queried);
        pending.next.set(waiting);
        drop(EndOfBorrow { pending: &pending, collection: &collection });
        assert_eq!(pending.blocks[0].size_from.get(), expected, "{waiting}");
    }
}

/// A size that the blocks of the next test do not have.
const QUERIED: usize = 100;

#[test]
fn without_a_collection_nothing_waits_and_sizes_are_queried() {
    let table = SizeSource::Table(Box::leak(Box::new(Eights::default())));
    let mut collection = Collection::new(table, None);
    collection.queries_own_blocks = Some(|_, _| QUERIED);
    let text = Box::new([0_u8; 20]);
    let measured = measure_with(&collection, &(), |(), ops| {
        assert!(ops.pending.is_none());
        // SAFETY: a box, which outlives the measurement.
        unsafe { ops.block(text.as_ptr(), Layout::for_value(&*text)) };
        assert_eq!(ops.bytes(), QUERIED);
        // The table knows them by an address inside, or without a layout.
        ops.enclosing_block(at(33), 0);
        ops.enclosing_block_at(at(49), 0, 8);
        #[cfg(feature = "bytes")]
        assert!(ops.whole_block(at(64), 8));
        #[cfg(not(feature = "bytes"))]
        ops.enclosing_block(at(64), 8);
    });
    assert_eq!((measured.bytes, measured.blocks, measured.computed), (QUERIED + 24, 4, 0));
}

#[test]
fn the_usable_bytes_follow_from_the_block_that_was_there() {
    let queried = SizeFrom::query(Layout::new::<u64>());
    let classes = SizeClasses::new(|size| Some(size.next_multiple_of(64)));
    let (header, none) = (SizeClasses::OF_HEADER, SizeClasses::NONE);
    // The bytes of a block that was at the address of one of 100, and the answer.
    for (size_from, was_there, expected) in [
        (queried, Some(128), Some(128)),
        (queried, Some(192), None),
        (queried, None, None),
        (SizeFrom::Request, Some(128), Some(128)),
        (SizeFrom::Request, None, None),
        (SizeFrom::query(Layout::from_size_align(100, 64).unwrap()), Some(128), None),
        (SizeFrom::Known, Some(128), None),
        (SizeFrom::Answered, Some(128), None),
    ] {
        let block = ExpectedBlock::new(at(16), 100);
        block.size_from.set(size_from);
        for (classes, expected) in [(&classes, expected), (&header, expected), (&none, None)] {
            let blocks = of_classes(classes);
            let usable = was_there.unwrap_or(0);
            let code = was_there.map_or(0, |usable| u8::try_from(usable / 16 + 1).unwrap());
            let answer = blocks.quick_answer(&block, (code, usable));
            assert_eq!(answer, expected, "{size_from:?} {was_there:?}");
        }
    }
}

/// Returns no expected blocks, where only the classes decide.
fn of_classes(classes: &SizeClasses) -> ExpectedBlocks<'_> {
    ExpectedBlocks {
        blocks: &[],
        next: &[],
        missed: &|_| unreachable!("nothing is looked up"),
        usable_size: |_, _| unreachable!("nothing is queried"),
        classes,
    }
}

#[test]
fn the_bytes_of_a_block_that_was_replaced_are_not_those_of_the_next_one() {
    let of_40 = ExpectedBlock::new(at(16), 40);
    let classes = SizeClasses::new(|size| Some(size.next_multiple_of(16)));
    // What was there, and whether a block of 40 bytes may have so many: by its class, by a header.
    let answers = [(48, true, true), (64, false, true), (128, false, false), (32, false, false)];
    for (usable, by_class, by_header) in answers {
        for (classes, may_have) in [(&classes, by_class), (&SizeClasses::OF_HEADER, by_header)] {
            let blocks = of_classes(classes);
            let expected = may_have.then_some(ExpectedSizes { requested: Some(40), usable });
            assert_eq!(blocks.sizes(&of_40, AtBegin::Usable(usable)), expected, "{usable}");
        }
    }
}
