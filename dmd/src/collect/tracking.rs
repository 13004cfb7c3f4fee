//! The tracker as memreport's collections see it: finds blocks of claims, and begins collections.

use std::any::type_name;
use std::hint::black_box;
use std::marker::PhantomData;

use memreport::__private::{Block as FoundBlock, Claim, Found, Place, Recording, Tracker, Wrong};
use memreport::UsableSize;

use super::collection::{Collection, tracker_bytes};
use crate::mem::sys;
use crate::sample::plan;
use crate::stack::thread::mark_own;
use crate::table::blocks::{Granule, LiveBlock};
use crate::table::{BLOCKS, has_gaps};

/// The tracker of a program whose inner allocator is `A`.
#[derive(Debug)]
pub struct Tracking<A> {
    _allocator: PhantomData<fn() -> A>,
}

impl<A: UsableSize> Tracking<A> {
    /// The only value.
    pub const NEW: Self = Tracking { _allocator: PhantomData };

    const GRANULE: Granule = Granule::of::<A>();
}

impl<A: UsableSize + 'static> Tracker for Tracking<A> {
    fn is_awake(&self) -> bool {
        plan::plan().is_awake()
    }

    fn tracks_every_block(&self) -> bool {
        !has_gaps()
    }

    fn tracks_c_heap(&self) -> bool {
        plan::plan().has_c_heap()
    }

    fn state(&self) -> String {
        plan::state()
    }

    fn look_up(&self, mut claim: Claim) -> Found {
        claim.address = sys::untagged(claim.address);
        match claim.place {
            Place::Start => look_up_start(Self::GRANULE, claim),
            Place::StartIfAny => found(BLOCKS.starting_at(Self::GRANULE, claim.address)),
            Place::Inside => found(BLOCKS.enclosing(Self::GRANULE, claim.address)),
        }
    }

    #[inline]
    fn exact_block(&self, start: usize, size: usize) -> Option<usize> {
        BLOCKS.find_small(Self::GRANULE, start, size).map(|small| small.usable)
    }

    #[inline]
    fn entry_address(&self, address: usize) -> *const u8 {
        BLOCKS.word_address(Self::GRANULE, address)
    }

    fn begin(&self) -> Box<dyn Recording> {
        // Keeps the name among the program's constants, where `about-memory inspect` looks for it.
        black_box(type_name::<A>());
        Box::new(Collection::begin(Self::GRANULE))
    }

    fn mark_own_thread(&self) {
        mark_own();
    }

    fn own_memory(&self, report: &mut dyn FnMut(&'static str, usize, &'static str)) {
        report(
            "explicit/dmd/tables",
            tracker_bytes(Self::GRANULE),
            "DMD's tables of blocks and stacks. None of it is on the program's heap.",
        );
    }
}

/// Looks up the block that should start at the claimed address.
pub(super) fn look_up_start(granule: Granule, claim: Claim) -> Found {
    if let Some(found) = BLOCKS.starting_at(granule, claim.address) {
        let block = found.block;
        let agrees = claim.size.is_none_or(|size| size == block.requested);
        return Found {
            bytes: if agrees { block.usable } else { claim.size.unwrap_or(0) },
            block: Some(found_block(found)),
            wrong: if agrees { None } else { Some(Wrong::Partial) },
        };
    }
    // With gaps, most such blocks were allocated before tracking, and a search would take long. If
    // the address is inside a block, the pass over all blocks finds out.
    let (block, wrong) = if has_gaps() {
        (None, Wrong::Untracked)
    } else {
        let block = BLOCKS.enclosing(granule, claim.address).map(found_block);
        (block, block.map_or(Wrong::NonHeap, |_| Wrong::Interior))
    };
    Found { bytes: claim.size.unwrap_or(0), block, wrong: Some(wrong) }
}

/// Returns the answer of a look-up that cannot be wrong.
fn found(block: Option<LiveBlock>) -> Found {
    let block = block.map(found_block);
    Found { bytes: block.map_or(0, |block| block.usable), block, wrong: None }
}

fn found_block(found: LiveBlock) -> FoundBlock {
    let LiveBlock { start, block, packed } = found;
    FoundBlock { start, requested: block.requested, usable: block.usable, identity: packed.word() }
}
