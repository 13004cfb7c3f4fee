//! Restricts the collections of a thread to some blocks, so that other tests' blocks do not count.

use std::cell::RefCell;

use crate::table::packed_block::{Block, SiteId};

/// A block that counts, as it was when it was allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedBlock {
    pub(crate) address: usize,
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) site: SiteId,
}

/// The blocks that count in a collection. All others are left out of its sums and lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restriction {
    /// Sorted by address, which is unique.
    blocks: Vec<CountedBlock>,
    /// The tracker's numbers of the threads whose blocks all count.
    threads: Vec<u32>,
}

std::thread_local! {
    static CURRENT: RefCell<Option<Restriction>> = const { RefCell::new(None) };
}

impl Restriction {
    pub(crate) fn new(mut blocks: Vec<CountedBlock>, threads: Vec<u32>) -> Self {
        blocks.sort_unstable_by_key(|block| block.address);
        Restriction { blocks, threads }
    }

    /// Runs `work`, whose collections on this thread count these blocks alone.
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        /// Ends the restriction, also if `work` panics.
        struct End;

        impl Drop for End {
            fn drop(&mut self) {
                set(None);
            }
        }

        let _end = End;
        set(Some(self));
        work()
    }

    /// Returns the restriction of this thread's collections.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Returns whether the live block at this address counts. `thread` has
    /// allocated it.
    pub(super) fn counts(&self, address: usize, block: Block, thread: Option<u32>) -> bool {
        thread.is_some_and(|thread| self.threads.contains(&thread))
            || self.at_or_before(address).is_some_and(|counted| {
                // Another block may have been allocated there since, by a thread not watched.
                counted.address == address
                    && counted.requested == block.requested
                    && counted.usable == block.usable
                    && counted.site == block.site
            })
    }

    /// Returns whether an address lies inside a counted block, after its start.
    pub(super) fn is_inside(&self, address: usize) -> bool {
        self.at_or_before(address)
            .is_some_and(|block| block.address < address && address < block.address + block.usable)
    }

    fn at_or_before(&self, address: usize) -> Option<&CountedBlock> {
        let after = self.blocks.partition_point(|block| block.address <= address);
        self.blocks.get(after.checked_sub(1)?)
    }
}

fn set(restriction: Option<Restriction>) {
    let _ = CURRENT.try_with(|current| current.replace(restriction));
}
