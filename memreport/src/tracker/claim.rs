//! Defines a claim, a reporter's statement about one block, and the answer of the tracker.

use core::alloc::Layout;
use core::cell::Cell;

use super::size_classes::SizeClasses;
use crate::field::Field;

/// A statement of a reporter about one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// An address in the block, as the reporter passed it.
    pub address: usize,
    /// The size in bytes with which the block was allocated, if the reporter has it.
    pub size: Option<usize>,
    /// The position of the address within the block.
    pub place: Place,
}

/// The position of a claimed address within its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first byte. Any other position is a defect of the reporter.
    Start,
    /// The first byte, if the address is in a block at all. No block around it is searched for.
    StartIfAny,
    /// Any byte. An address outside all blocks is no defect.
    Inside,
}

/// A block as a reporter expects it in the table.
#[derive(Debug)]
pub struct ExpectedBlock {
    pub(crate) start: Cell<*const u8>,
    /// The requested bytes, or [`NO_SIZE`](Self::NO_SIZE).
    pub(crate) size: Cell<usize>,
    pub(crate) field: Cell<Option<&'static Field>>,
    pub(crate) size_from: Cell<SizeFrom>,
    /// The usable bytes, if they are [`Known`](SizeFrom::Known).
    pub(crate) usable: Cell<usize>,
}

/// The source of a block's usable bytes, if these do not follow from the copy of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeFrom {
    /// The table. If it has gaps and not this block: the requested bytes, as computed ones.
    Request,
    /// The allocator. The block must be alive and has this alignment, of at most 16 bytes.
    Query(Alignment),
    /// The allocator, as of [`Query`](Self::Query), with an alignment of more than 16 bytes.
    AlignedQuery(Alignment),
    /// None: they are known. The allocator has reported them, or the block was there when the
    /// collection began.
    Known,
    /// None: the block stands for a claim that is answered already.
    Answered,
}

impl SizeFrom {
    /// The largest alignment of blocks whose size classes are those of their sizes alone.
    pub(crate) const USUAL_ALIGN: usize = 16;

    /// Returns the query for a live block with this layout.
    #[inline(always)]
    pub(crate) fn query(layout: Layout) -> Self {
        let alignment = Alignment::of(layout);
        if layout.align() <= Self::USUAL_ALIGN {
            Self::Query(alignment)
        } else {
            Self::AlignedQuery(alignment)
        }
    }

    /// Returns the alignment, if the allocator reports the usable bytes.
    pub(crate) fn alignment(self) -> Option<Alignment> {
        match self {
            Self::Query(alignment) | Self::AlignedQuery(alignment) => Some(alignment),
            _ => None,
        }
    }

    /// Returns whether the requested bytes are known, and no large alignment is: a size class may
    /// tell the usable bytes.
    #[inline(always)]
    pub(crate) fn may_be_of_class(self) -> bool {
        matches!(self, Self::Request | Self::Query(_))
    }
}

/// An alignment: a power of two, by its exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment(u8);

impl Alignment {
    /// Returns the alignment of a layout.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "it is less than the bits of an address")]
    pub(crate) fn of(layout: Layout) -> Self {
        Alignment(layout.align().trailing_zeros() as u8)
    }

    /// Returns the layout of a block of this size; that of `()` if there is none.
    pub(crate) fn layout(self, size: usize) -> Layout {
        Layout::from_size_align(size, 1 << self.0).unwrap_or(Layout::new::<()>())
    }
}

impl ExpectedBlock {
    /// Stands for unknown requested bytes. No block has so many, so that the quick look-up does not
    /// find one.
    pub(crate) const NO_SIZE: usize = isize::MAX.unsigned_abs();

    /// Creates the block of this start and size, without a field.
    #[must_use]
    pub const fn new(start: *const u8, size: usize) -> Self {
        ExpectedBlock {
            start: Cell::new(start),
            size: Cell::new(size),
            field: Cell::new(None),
            size_from: Cell::new(SizeFrom::Request),
            usable: Cell::new(0),
        }
    }
}

impl ExpectedBlock {
    /// Returns the address of its first byte.
    #[inline(always)]
    #[must_use]
    pub fn start(&self) -> *const u8 {
        self.start.get()
    }

    /// Returns the size in bytes with which it was allocated; more than any block has if that is
    /// unknown.
    #[inline(always)]
    #[must_use]
    pub fn size(&self) -> usize {
        self.size.get()
    }

    /// Returns the innermost field of a derived type that led to the block.
    #[inline(always)]
    #[must_use]
    pub fn field(&self) -> Option<&'static Field> {
        self.field.get()
    }

    /// Returns the sizes, if the usable bytes are known.
    #[inline(always)]
    #[must_use]
    pub fn known(&self) -> Option<ExpectedSizes> {
        let sizes = || ExpectedSizes { requested: self.requested(), usable: self.usable.get() };
        (self.size_from.get() == SizeFrom::Known).then(sizes)
    }

    /// Returns the size with which it was allocated, if that is known.
    #[inline(always)]
    pub(crate) fn requested(&self) -> Option<usize> {
        let size = self.size.get();
        (size != Self::NO_SIZE).then_some(size)
    }
}

/// Blocks that are looked up together.
#[derive(Clone, Copy)]
pub struct ExpectedBlocks<'b> {
    /// The blocks to look up, in the order in which they were claimed. Those that waited were in
    /// `next` in an earlier call.
    pub blocks: &'b [ExpectedBlock],
    /// Blocks of a later call. The recorder prefetches what it reads for them.
    pub next: &'b [ExpectedBlock],
    /// Called for each block that the quick look-up cannot decide, when all before it are recorded.
    pub missed: &'b dyn Fn(&ExpectedBlock),
    /// The size query of the program's allocator.
    pub(crate) usable_size: unsafe fn(*const u8, Layout) -> usize,
    /// The size classes of that allocator.
    pub(crate) classes: &'b SizeClasses,
}

impl core::fmt::Debug for ExpectedBlocks<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("ExpectedBlocks").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

impl ExpectedBlocks<'_> {
    /// Calls `quick` for each block, and `missed` if that returns `None`. Counts the usable bytes
    /// that `quick` returns.
    #[inline(always)]
    pub fn look_up(self, mut quick: impl FnMut(&ExpectedBlock) -> Option<usize>) -> CountedBlocks {
        let mut counted = CountedBlocks::default();
        for block in self.blocks {
            match quick(block) {
                Some(bytes) => {
                    counted.blocks += 1;
                    counted.bytes += bytes;
                }
                None => (self.missed)(block),
            }
        }
        counted
    }
}

/// The block that started at an address when a collection began, as far as that is known without a
/// look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtBegin {
    /// There may be a block, whose size is unknown.
    Unknown,
    /// There was no block.
    NoBlock,
    /// A block of this many usable bytes.
    Usable(usize),
}

/// The block that contained an address when a collection began, as far as that is known without a
/// look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AroundBegin {
    /// Nothing is known.
    Unknown,
    /// There was no block.
    NoBlock,
    /// The block that started here, with this many usable bytes.
    Block {
        /// The address of its first byte.
        start: usize,
        /// Its usable bytes.
        usable: usize,
    },
}

/// The sizes of an expected block, which was not looked up in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedSizes {
    /// The bytes that it was allocated with, if its owner has them.
    pub requested: Option<usize>,
    /// Its usable bytes.
    pub usable: usize,
}

/// A number of blocks with the sum of their usable bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedBlocks {
    /// The number of blocks.
    pub blocks: usize,
    /// Their usable bytes.
    pub bytes: usize,
}

impl core::ops::AddAssign for CountedBlocks {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

/// The tracker's answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The bytes to count.
    pub bytes: usize,
    /// The block that contains the address.
    pub block: Option<Block>,
    /// The defect of the claim, if there is one.
    pub wrong: Option<Wrong>,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of its first byte.
    pub start: usize,
    /// The size in bytes with which it was allocated.
    pub requested: usize,
    /// The bytes that the program may use, slop included.
    pub usable: usize,
    /// A number that distinguishes this block from a later one at the same address.
    pub identity: u64,
}

/// A defect of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wrong {
    /// No block of the program's allocator contains the address.
    NonHeap,
    /// The address is inside a block, not at its start.
    Interior,
    /// The block was allocated with a different size.
    Partial,
    /// No block is known to start at the address, and the table is incomplete. No defect, unless a
    /// collection finds a block around it.
    Untracked,
}
