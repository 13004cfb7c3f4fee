//! The blocks of one region of addresses, as a recorder knows them without a look-up.

use super::claim::AtBegin;
use super::short_claim::Region;
use super::size_classes::UNIT;

/// The codes of usable sizes, in a byte.
#[derive(Clone, Copy, Debug)]
pub struct SizeCodes {
    /// The bytes that blocks are aligned to, as a power of two.
    pub align_bits: u32,
    /// The remainder of nearly all usable sizes modulo 16: 8 over glibc, whose headers take 8
    /// bytes.
    pub remainder: usize,
}

impl SizeCodes {
    /// The code of an address at which no block started.
    pub const NO_BLOCK: u8 = 0;

    /// The code of a size that no other code stands for.
    pub const OTHER_SIZE: u8 = u8::MAX;

    /// Returns the code of a block with this many usable bytes.
    #[inline]
    #[must_use]
    pub fn code(self, usable: usize) -> u8 {
        let units = usable.wrapping_sub(self.remainder);
        match u8::try_from(units / UNIT + 1) {
            Ok(code) if units & (UNIT - 1) == 0 => code,
            _ => Self::OTHER_SIZE,
        }
    }

    /// Returns the block that a code stands for.
    #[inline(always)]
    #[must_use]
    pub fn at_begin(self, code: u8) -> AtBegin {
        match code {
            Self::NO_BLOCK => AtBegin::NoBlock,
            Self::OTHER_SIZE => AtBegin::Unknown,
            code => AtBegin::Usable((usize::from(code) - 1) * UNIT + self.remainder),
        }
    }

    /// Returns the index of a block's code among those of its region.
    #[inline(always)]
    #[must_use]
    pub fn index(self, address: usize) -> usize {
        (address & Region::WITHIN) >> self.align_bits
    }
}

/// The blocks of one region.
#[derive(Clone, Copy, Debug)]
pub struct RegionBlocks<'b> {
    /// The region.
    pub region: Region,
    /// The codes' meaning.
    pub sizes: SizeCodes,
    /// A code for each address at which a block may start. Addresses behind them have no block.
    pub codes: &'b [u8],
}

impl RegionBlocks<'_> {
    /// Returns a region in which no block started.
    #[must_use]
    pub(crate) const fn none_of(region: Region) -> Self {
        RegionBlocks { region, sizes: SizeCodes { align_bits: 0, remainder: 0 }, codes: &[] }
    }

    /// Returns the block that started at this address of the region.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, address: usize) -> AtBegin {
        if address & ((1 << self.sizes.align_bits) - 1) != 0 {
            return AtBegin::NoBlock;
        }
        let code = self.codes.get(self.sizes.index(address)).copied();
        self.sizes.at_begin(code.unwrap_or(SizeCodes::NO_BLOCK))
    }

    /// Returns whether a block started at this address of the region.
    #[inline(always)]
    #[must_use]
    pub fn has(&self, address: usize) -> bool {
        self.at(address) != AtBegin::NoBlock
    }

    /// Returns the address of the code for a block that started here, to prefetch it.
    #[inline(always)]
    #[must_use]
    pub fn code_address(&self, address: usize) -> *const u8 {
        self.codes.as_ptr().wrapping_add(self.sizes.index(address))
    }
}
