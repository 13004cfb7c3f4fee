//! Blocks that nobody claims and that values of foreign types lead to, by the derive's `reachable`.
//!
//! A value's own words are read while its reporter holds it; the blocks behind them at the end of
//! the collection, when all claims are known. The kernel reads those, so a block that another
//! thread frees and unmaps meanwhile has no words.

use memreport::__private::{C_HEAP, Words};

use super::by_address::{ByAddress, FoundBlock};
use super::is_claimed;
use super::words::each_word;
use crate::collect::claims::claimants::ClaimantId;
use crate::collect::claims::words::ClaimWords;
use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;
use crate::stack::site;
use crate::table::BLOCKS;
use crate::table::blocks::{Granule, LiveBlock};
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, PackedBlock};

/// The blocks that the words of foreign values point into.
#[derive(Debug)]
pub(crate) struct Roots {
    granule: Granule,
    list: PageList<Root>,
    /// True if a value was read.
    has_values: bool,
}

#[derive(Clone, Copy, Debug)]
struct Root {
    start: usize,
    /// The block's packed word: a later block at this address has another.
    identity: u64,
    claimant: ClaimantId,
}

impl Roots {
    pub(crate) fn new(granule: Granule) -> Self {
        Roots { granule, list: PageList::new(), has_values: false }
    }

    /// Reads the words of a value for pointers into blocks.
    pub(crate) fn read(&mut self, words: Words<'_>, claimant: ClaimantId) {
        self.has_values = true;
        for word in words {
            if let Some(LiveBlock { start, packed, .. }) = BLOCKS.enclosing(self.granule, word) {
                self.list.push(Root { start, identity: packed.word(), claimant });
            }
        }
    }

    /// Returns the number of pointers so far.
    pub(crate) fn len(&self) -> usize {
        self.list.as_slice().len()
    }

    /// Forgets the pointers behind the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.list.truncate(length);
    }
}

/// The blocks that are reached from foreign values, each with the claimant of the nearest one.
#[derive(Debug)]
pub(crate) struct Reached {
    granule: Granule,
    /// The epoch of blocks that are not in the dump.
    epoch: Epoch,
    /// The numbers of the blocks by their starts, until all are found.
    numbers: LocalInterner<usize>,
    /// The blocks, in the order in which they were found; by address once all are found.
    blocks: PageList<ReachedBlock>,
    /// True if a value was read, also if its blocks are not in the table.
    has_values: bool,
}

#[derive(Clone, Copy, Debug)]
struct ReachedBlock {
    start: usize,
    identity: u64,
    requested: usize,
    claimant: ClaimantId,
}

impl FoundBlock for ReachedBlock {
    fn start(&self) -> usize {
        self.start
    }

    fn identity(&self) -> u64 {
        self.identity
    }
}

/// The claimants of reached blocks that a pass over all blocks has not met yet.
#[derive(Debug)]
pub(crate) struct ReachedByAddress<'r>(ByAddress<'r, ReachedBlock>);

impl ReachedByAddress<'_> {
    /// Returns the claimant of a block that was reached. No later call may be for a lower address.
    #[inline]
    pub(crate) fn claimant_of(&mut self, start: usize, packed: PackedBlock) -> Option<ClaimantId> {
        self.0.find(start, packed).map(|block| block.claimant)
    }
}

impl Reached {
    /// Follows pointers from the roots, through blocks that nobody claims. `claims` are sorted by
    /// address.
    pub(crate) fn find(roots: &Roots, epoch: Epoch, claims: &[ClaimWords]) -> Self {
        let (numbers, blocks) = (LocalInterner::new(), PageList::new());
        let Roots { granule, has_values, .. } = *roots;
        let mut reached = Reached { granule, epoch, numbers, blocks, has_values };
        for root in roots.list.as_slice() {
            if let Some(found) = BLOCKS.starting_at(reached.granule, root.start)
                && found.packed.word() == root.identity
            {
                reached.add(found, root.claimant, claims);
            }
        }
        // Breadth first: the nearest value counts a block.
        let mut next = 0;
        while let Some(&block) = reached.blocks.as_slice().get(next) {
            let ReachedBlock { start, requested, claimant, .. } = block;
            next += 1;
            each_word(start, start + requested, |_, word| {
                if let Some(found) = BLOCKS.enclosing(reached.granule, word) {
                    reached.add(found, claimant, claims);
                }
            });
        }
        reached.numbers = LocalInterner::new();
        reached.blocks.as_mut_slice().sort_unstable_by_key(|block| block.start);
        reached
    }

    fn add(&mut self, found: LiveBlock, claimant: ClaimantId, claims: &[ClaimWords]) {
        let LiveBlock { start, block, packed } = found;
        if !self.is_unreported(block) || is_claimed(start, claims) {
            return;
        }
        let Some(number) = self.numbers.intern(start) else { return };
        if number as usize == self.blocks.as_slice().len() {
            let (identity, requested) = (packed.word(), block.requested);
            self.blocks.push(ReachedBlock { start, identity, requested, claimant });
        }
    }

    /// Returns whether the block is in the dump, and not reported on allocation.
    fn is_unreported(&self, block: Block) -> bool {
        let is_reported = |on_alloc: u16| on_alloc != 0 && u32::from(on_alloc) != C_HEAP;
        block.epoch != self.epoch
            && site::site(block.site).is_none_or(|site| !is_reported(site.on_alloc))
    }

    /// Returns whether a value was read, also if its blocks are not in the table.
    pub(crate) fn has_values(&self) -> bool {
        self.has_values
    }

    /// Returns the claimants of blocks, for a pass over all blocks in the order of their addresses.
    pub(crate) fn by_address(&self) -> ReachedByAddress<'_> {
        ReachedByAddress(ByAddress::new(self.blocks.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use memreport::__private::words_of;

    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;

    const GRANULE: Granule = Granule::OF_32;
    const BYTES: usize = 64;
    const WORDS: usize = BYTES / size_of::<usize>();

    /// Blocks of the table over memory of the test's own, which they leave when it is dropped.
    struct Planted {
        memory: Vec<[usize; WORDS]>,
        first: usize,
        count: usize,
    }

    impl Planted {
        fn of(count: usize, epoch: Epoch) -> Self {
            let memory = vec![[0; WORDS]; count + 1];
            let first = memory.as_ptr().addr().next_multiple_of(BYTES);
            let planted = Planted { memory, first, count };
            for index in 0..count {
                let block = Block {
                    requested: BYTES,
                    usable: BYTES,
                    site: SiteId::UNKNOWN,
                    epoch,
                    rate: SamplingRate::EVERY,
                    time: 0,
                };
                BLOCKS.insert(GRANULE, planted.start(index), block);
            }
            planted
        }

        fn start(&self, index: usize) -> usize {
            self.first + index * BYTES
        }

        fn set(&mut self, index: usize, word: usize, value: usize) {
            let before = (self.first - self.memory.as_ptr().addr()) / size_of::<usize>();
            self.memory.as_flattened_mut()[before + index * WORDS + word] = value;
        }

        fn claimant(&self, reached: &Reached, index: usize) -> Option<u32> {
            let packed = BLOCKS.starting_at(GRANULE, self.start(index))?.packed;
            let found = reached.by_address().claimant_of(self.start(index), packed);
            found.map(|ClaimantId(number)| number)
        }
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            (0..self.count).for_each(|index| _ = BLOCKS.remove(GRANULE, self.start(index)));
        }
    }

    fn read(roots: &mut Roots, words: &[usize], claimant: u32) {
        roots.read(words_of(words), ClaimantId(claimant));
    }

    #[test]
    fn blocks_are_reached_once_and_not_through_claimed_ones() {
        let mut planted = Planted::of(7, Epoch::FIRST);
        let at = |planted: &Planted, index| planted.start(index);
        // 0 → 1 → 2 → 0, in a cycle and through an address inside a block; 1 → 3, claimed → 4.
        let links = [(0, 7, 1, 0), (1, 0, 2, 40), (2, 3, 0, 0), (1, 5, 3, 0), (3, 0, 4, 0)];
        for (from, word, to, offset) in links {
            let target = at(&planted, to) + offset;
            planted.set(from, word, target);
        }
        // Two values share 5.
        let (first, second) = ([7, at(&planted, 0), 0], [at(&planted, 5) + 8, at(&planted, 1)]);
        let mut roots = Roots::new(GRANULE);
        read(&mut roots, &first, 1);
        read(&mut roots, &second, 2);
        let target = at(&planted, 5);
        planted.set(0, 2, target);
        let claims = [[at(&planted, 3) as u64, 0]];
        let later = Epoch::FIRST.next();
        let reached = Reached::find(&roots, later, &claims);
        let found: Vec<_> = (0..7).map(|index| planted.claimant(&reached, index)).collect();
        assert_eq!(found, [Some(1), Some(2), Some(2), None, None, Some(2), None]);
        // Blocks of the collection's own epoch are not in the dump.
        let reached = Reached::find(&roots, Epoch::FIRST, &[]);
        assert!((0..7).all(|index| planted.claimant(&reached, index).is_none()));
    }

    #[test]
    fn a_later_block_at_the_same_address_is_not_reached() {
        let planted = Planted::of(1, Epoch::FIRST);
        let mut roots = Roots::new(GRANULE);
        read(&mut roots, &[planted.start(0)], 1);
        let found = BLOCKS.starting_at(GRANULE, planted.start(0)).expect("it was inserted");
        let later = Epoch::FIRST.next().next();
        let reached = Reached::find(&roots, later, &[]);
        BLOCKS.remove(GRANULE, planted.start(0));
        BLOCKS.insert(GRANULE, planted.start(0), Block { requested: 32, ..found.block });
        let packed = BLOCKS.starting_at(GRANULE, planted.start(0)).expect("inserted").packed;
        let is_same = packed.word() == found.packed.word();
        let found = reached.by_address().claimant_of(planted.start(0), packed);
        assert_eq!(found.is_some(), is_same);
    }

    #[test]
    fn forgotten_pointers_lead_nowhere() {
        let planted = Planted::of(2, Epoch::FIRST);
        let mut roots = Roots::new(GRANULE);
        read(&mut roots, &[planted.start(0)], 1);
        read(&mut roots, &[planted.start(1)], 2);
        roots.truncate(1);
        let reached = Reached::find(&roots, Epoch::FIRST.next(), &[]);
        assert_eq!(planted.claimant(&reached, 0), Some(1));
        assert_eq!(planted.claimant(&reached, 1), None);
    }
}
