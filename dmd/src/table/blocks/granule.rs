//! The granule of the table: the unit of memory in which at most one block starts.

use memreport::UsableSize;

use super::leaf::LEAF_BITS;

/// A unit of memory in which at most one block starts. It starts at the granule's first byte, or at
/// its middle if there are halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granule {
    pub(super) shift: u32,
    has_halves: bool,
}

impl Granule {
    /// The granule of jemalloc, mimalloc and snmalloc.
    #[cfg(test)]
    pub(crate) const OF_16: Self = Self::new(16, 16);
    /// The granule of glibc.
    #[cfg(test)]
    pub(crate) const OF_32: Self = Self::new(32, 16);

    /// Returns the granule for an allocator whose blocks are at least `spacing` bytes apart, 16 or
    /// 32, and start at a multiple of `align` bytes: at least half of that.
    pub(crate) const fn new(spacing: usize, align: usize) -> Self {
        assert!(spacing == 16 || spacing == 32, "the spacing of blocks is 16 or 32 bytes");
        assert!(align >= spacing / 2, "blocks are aligned to half of their spacing");
        Granule { shift: spacing.trailing_zeros(), has_halves: align < spacing }
    }

    /// Returns the granule of an allocator.
    pub(crate) const fn of<A: UsableSize>() -> Self {
        Self::new(A::SPACING, A::ALIGN)
    }

    /// Returns the granule in a byte, which is not 0.
    pub(crate) const fn packed(self) -> u8 {
        1 << self.shift | self.has_halves as u8
    }

    /// Returns the granule that [`packed`](Self::packed) has packed; `None` if there was none.
    pub(crate) fn from_packed(packed: u8) -> Option<Self> {
        let shift = (packed & !1).checked_ilog2()?;
        Some(Granule { shift, has_halves: packed & 1 != 0 })
    }

    pub(crate) const fn bytes(self) -> usize {
        1 << self.shift
    }

    /// Returns the number of granules in a leaf.
    pub(super) const fn words(self) -> usize {
        1 << (LEAF_BITS - self.shift)
    }

    /// Returns the bytes that the starts of blocks are multiples of.
    pub(crate) const fn align(self) -> usize {
        if self.has_halves { self.bytes() / 2 } else { self.bytes() }
    }

    /// Returns whether a block can start at this address.
    #[inline(always)]
    pub(super) fn is_start(self, address: usize) -> bool {
        address & (self.align() - 1) == 0
    }

    /// Returns whether a block that starts at this address starts at the middle of its granule.
    #[inline(always)]
    pub(super) fn is_second_half(self, address: usize) -> bool {
        self.has_halves && address & (self.bytes() / 2) != 0
    }

    /// Returns the address of a block by the index of its granule in the address space.
    pub(super) fn start(self, granule: usize, second_half: bool) -> usize {
        (granule << self.shift) + if second_half { self.bytes() / 2 } else { 0 }
    }
}
