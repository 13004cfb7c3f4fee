//! The granule of the table: the unit of memory in which at most one block starts.

use super::leaf::LEAF_BITS;

/// A unit of memory in which at most one block starts. Blocks are aligned to half a granule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granule {
    pub(super) shift: u32,
}

impl Granule {
    /// The two granules.
    pub(crate) const OF_16: Self = Self::of_spacing(16);
    pub(crate) const OF_32: Self = Self::of_spacing(32);

    /// Returns the granule for an allocator whose blocks are at least this many bytes apart: 16 or
    /// 32.
    pub(crate) const fn of_spacing(bytes: usize) -> Self {
        assert!(bytes == 16 || bytes == 32, "the spacing of blocks is 16 or 32 bytes");
        Granule { shift: bytes.trailing_zeros() }
    }

    pub(crate) const fn bytes(self) -> usize {
        1 << self.shift
    }

    /// Returns the number of granules in a leaf.
    pub(super) const fn words(self) -> usize {
        1 << (LEAF_BITS - self.shift)
    }

    /// Returns whether a block can start at this address.
    #[inline(always)]
    pub(super) fn is_start(self, address: usize) -> bool {
        address & (self.bytes() / 2 - 1) == 0
    }

    pub(super) fn is_second_half(self, address: usize) -> bool {
        address & (self.bytes() / 2) != 0
    }

    /// Returns the address of a block by the index of its granule in the address space.
    pub(super) fn start(self, granule: usize, second_half: bool) -> usize {
        (granule << self.shift) + if second_half { self.bytes() / 2 } else { 0 }
    }
}
