//! Restricts the collections of a thread to some blocks, so that other tests' blocks do not count.

use std::cell::{Cell, RefCell};

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
    /// Without a destructor, unlike the next: the first use of that takes the linker's lock, which
    /// a library's initialiser holds that waits for a collection to end.
    static IS_RESTRICTED: Cell<bool> = const { Cell::new(false) };
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
        if !IS_RESTRICTED.try_with(Cell::get).unwrap_or(false) {
            return None;
        }
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
    let _ = IS_RESTRICTED.try_with(|flag| flag.set(restriction.is_some()));
    let _ = CURRENT.try_with(|current| current.replace(restriction));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::table::epoch::Epoch;

    #[test]
    fn the_listed_blocks_and_those_of_the_threads_count() {
        let site = SiteId::from_number(5);
        let counted = |address| CountedBlock { address, requested: 100, usable: 104, site };
        let restriction = Restriction::new(vec![counted(0x3000), counted(0x1000)], vec![7]);
        let block = |requested, usable, site| {
            let (epoch, rate) = (Epoch::FIRST, SamplingRate::EVERY);
            Block { requested, usable, site, epoch, rate, time: 0 }
        };
        let same = block(100, 104, site);
        for (address, block, thread, expected) in [
            (0x1000, same, None, true),
            (0x3000, same, Some(8), true),
            (0x1008, same, None, false),
            (0xfff, same, None, false),
            (0x2000, same, Some(7), true),
            // Later blocks at the same address.
            (0x1000, block(99, 104, site), None, false),
            (0x1000, block(100, 120, site), None, false),
            (0x1000, block(100, 104, SiteId::UNKNOWN), None, false),
        ] {
            assert_eq!(restriction.counts(address, block, thread), expected, "{address:x}");
        }
        for (address, expected) in
            [(0xfff, false), (0x1000, false), (0x1001, true), (0x1067, true), (0x1068, false)]
        {
            assert_eq!(restriction.is_inside(address), expected, "{address:x}");
        }
    }

    #[test]
    fn a_restriction_ends_with_its_work() {
        assert!(Restriction::current().is_none());
        Restriction::default().run(|| assert!(Restriction::current().is_some()));
        let failed =
            std::panic::catch_unwind(|| Restriction::default().run(|| panic!("on purpose")));
        assert!(failed.is_err() && Restriction::current().is_none());
    }
}
