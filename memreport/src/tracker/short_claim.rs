//! A claim in one word, as a recorder stores nearly all of them.
//!
//! ```text
//! bits 0-28    the address within its region, divided by 8
//! bits 29-32   the number of the region in the recorder's list
//! bits 33-44   the requested bytes; the usable ones if those are unknown
//! bits 45-51   the slop, or 127 for unknown requested bytes
//! bits 52-62   the claimant
//! bit 63       0
//! ```

use super::claim::ExpectedSizes;

/// The number of address bits within a region.
const REGION_BITS: u32 = 32;

/// Addresses of short claims are multiples of this power of two.
const ALIGNMENT_BITS: u32 = 3;

/// The number of bits of a region's number.
const NUMBER_BITS: u32 = 4;

/// The number of bits of the requested bytes.
const REQUESTED_BITS: u32 = 12;

/// The number of bits of the slop.
const SLOP_BITS: u32 = 7;

/// The number of bits of packed sizes.
const SIZES_BITS: u32 = REQUESTED_BITS + SLOP_BITS;

/// The slop that stands for unknown requested bytes. The usable ones are in their place.
const UNKNOWN: usize = (1 << SLOP_BITS) - 1;

const NUMBER_SHIFT: u32 = REGION_BITS - ALIGNMENT_BITS;
const SIZES_SHIFT: u32 = NUMBER_SHIFT + NUMBER_BITS;
const CLAIMANT_SHIFT: u32 = SIZES_SHIFT + SIZES_BITS;
const CLAIMANT_BITS: u32 = u64::BITS - 1 - CLAIMANT_SHIFT;

/// A claim in one word, and its region.
#[derive(Clone, Copy, Debug)]
pub struct ShortClaim {
    /// The upper half of the address.
    pub region: Region,
    /// The claim, without the number of the region. The highest bit is not set.
    pub word: u64,
}

/// The upper half of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(pub u64);

impl Region {
    /// The bits of an address within its region: all of them where addresses have 32 bits.
    pub const WITHIN: usize = u32::MAX as usize;

    /// The bytes of a region; 0 where addresses have 32 bits.
    pub const BYTES: usize = Self::WITHIN.wrapping_add(1);

    /// A region that contains no address.
    pub const NONE: Self = Region(u64::MAX);

    /// Returns the first address of the region.
    #[inline]
    #[must_use]
    pub fn first(self) -> usize {
        usize::try_from(self.0 << REGION_BITS).unwrap_or(usize::MAX)
    }

    /// Returns the region of an address.
    #[inline(always)]
    #[must_use]
    pub fn of(address: usize) -> Self {
        Region(address as u64 >> REGION_BITS)
    }
}

/// Returns an address without the tag in its highest byte, which this processor does not look at:
/// an allocator may put a number there that is different for each block.
#[inline(always)]
#[must_use]
pub const fn untagged(address: usize) -> usize {
    if cfg!(target_arch = "aarch64") { address & (usize::MAX >> 8) } else { address }
}

/// The bits of short claims that are equal for all claims of a region: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionNumber(u64);

impl RegionNumber {
    /// The number of regions that can have a number.
    pub const COUNT: usize = 1 << NUMBER_BITS;

    /// The number of the first region.
    pub const ZERO: Self = RegionNumber(0);

    /// Returns the number of the region at this index of the list; `None` if it does not fit.
    #[must_use]
    pub fn of(index: usize) -> Option<Self> {
        (index < Self::COUNT).then_some(RegionNumber((index as u64) << NUMBER_SHIFT))
    }

    /// Returns the index of the region of a claim.
    #[inline(always)]
    #[must_use]
    pub fn index_of(word: u64) -> usize {
        (word >> NUMBER_SHIFT) as usize & (Self::COUNT - 1)
    }
}

/// The bits of short claims that are equal for all claims of a claimant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimantBits(u64);

impl ClaimantBits {
    /// The bits of the first claimant.
    pub const ZERO: Self = ClaimantBits(0);

    /// Returns the bits of the claimant with this number; `None` if that does not fit.
    #[inline(always)]
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        let number = u64::from(number);
        (number >> CLAIMANT_BITS == 0).then_some(ClaimantBits(number << CLAIMANT_SHIFT))
    }

    /// Returns the number of the claimant.
    #[inline]
    #[must_use]
    pub fn number(self) -> u32 {
        (self.0 >> CLAIMANT_SHIFT) as u32
    }
}

impl ShortClaim {
    /// The most requested bytes of a short claim.
    pub const MOST_REQUESTED: usize = (1 << REQUESTED_BITS) - 1;

    /// Packs a claim into one word; `None` if it does not fit.
    #[inline(always)]
    #[must_use]
    pub fn new(start: usize, sizes: ExpectedSizes, bits: ClaimantBits) -> Option<Self> {
        let sizes = pack_sizes(sizes)?;
        ShortClaim::is_aligned(start).then(|| ShortClaim::packed(start, sizes, bits))
    }

    /// Returns whether a short claim may have this address.
    #[inline(always)]
    #[must_use]
    pub fn is_aligned(start: usize) -> bool {
        start & ((1 << ALIGNMENT_BITS) - 1) == 0
    }

    /// Packs a claim that is known to fit: of less than 4 KiB, with at most 126 bytes of slop, and
    /// an [aligned](Self::is_aligned) address.
    #[inline(always)]
    #[must_use]
    pub fn of_small(start: usize, requested: usize, usable: usize, bits: ClaimantBits) -> Self {
        let sizes = (requested | (usable - requested) << REQUESTED_BITS) as u64;
        debug_assert_eq!(
            pack_sizes(ExpectedSizes { requested: Some(requested), usable }),
            Some(sizes)
        );
        ShortClaim::packed(start, sizes, bits)
    }

    /// Packs a claim whose requested bytes are unknown; `None` if it does not fit.
    #[inline(always)]
    #[must_use]
    pub fn of_found(start: usize, usable: usize, bits: ClaimantBits) -> Option<Self> {
        let fits = usable >> REQUESTED_BITS == 0 && ShortClaim::is_aligned(start);
        let sizes = (usable | UNKNOWN << REQUESTED_BITS) as u64;
        fits.then(|| ShortClaim::packed(start, sizes, bits))
    }

    /// Packs a claim with packed sizes.
    #[inline(always)]
    fn packed(start: usize, sizes: u64, ClaimantBits(bits): ClaimantBits) -> Self {
        let within = (start & Region::WITHIN) as u64 >> ALIGNMENT_BITS;
        ShortClaim { region: Region::of(start), word: within | sizes << SIZES_SHIFT | bits }
    }

    /// Returns the claim in this region, from its word with any number.
    #[inline]
    #[must_use]
    pub fn of_word(word: u64, region: Region) -> Self {
        ShortClaim { region, word: word & !((RegionNumber::COUNT as u64 - 1) << NUMBER_SHIFT) }
    }

    /// Returns the word for a list of claims in which the region has this number.
    #[inline(always)]
    #[must_use]
    pub fn in_region(self, RegionNumber(number): RegionNumber) -> u64 {
        self.word | number
    }

    /// Returns the address of the claim.
    #[inline]
    #[must_use]
    pub fn address(self) -> u64 {
        self.region.0 << REGION_BITS | self.within() as u64
    }

    /// Returns the address within its region.
    #[inline(always)]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "a region has less bytes than an address")]
    pub fn within(self) -> usize {
        (self.cut(0, NUMBER_SHIFT) << ALIGNMENT_BITS) as usize
    }

    /// Returns the packed sizes, for [`unpack_sizes`].
    #[inline]
    #[must_use]
    pub fn sizes(self) -> u64 {
        self.cut(SIZES_SHIFT, SIZES_BITS)
    }

    /// Returns the number of the claimant.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "it has eleven bits")]
    pub fn claimant(self) -> u32 {
        self.cut(CLAIMANT_SHIFT, CLAIMANT_BITS) as u32
    }

    #[inline]
    fn cut(self, from: u32, bits: u32) -> u64 {
        self.word >> from & ((1 << bits) - 1)
    }
}

/// Packs the sizes of a claim: the requested bytes in the lower bits, the slop above. Returns
/// `None` if they do not fit.
#[inline(always)]
#[must_use]
pub fn pack_sizes(sizes: ExpectedSizes) -> Option<u64> {
    let (lower, slop, most) = match sizes.requested {
        Some(requested) => (requested, sizes.usable.wrapping_sub(requested), UNKNOWN - 1),
        None => (sizes.usable, UNKNOWN, UNKNOWN),
    };
    let fits = lower >> REQUESTED_BITS == 0 && slop <= most;
    fits.then_some((lower | slop << REQUESTED_BITS) as u64)
}

/// Unpacks the sizes that [`pack_sizes`] has packed.
#[inline]
#[must_use]
pub fn unpack_sizes(packed: usize) -> ExpectedSizes {
    let (lower, slop) = (packed & ((1 << REQUESTED_BITS) - 1), packed >> REQUESTED_BITS);
    match slop {
        UNKNOWN => ExpectedSizes { requested: None, usable: lower },
        slop => ExpectedSizes { requested: Some(lower), usable: lower + slop },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_packed_and_unpacked() {
        let known = |requested, usable| ExpectedSizes { requested: Some(requested), usable };
        let unknown = |usable| ExpectedSizes { requested: None, usable };
        let most = ShortClaim::MOST_REQUESTED;
        let fitting = [known(1, 24), known(24, 24), known(most, most + 126), unknown(9)];
        let others = [known(25, 24), known(most + 1, most + 1), known(8, 135), unknown(most + 1)];
        for (address, is_aligned) in [
            (0x10, true),
            (0x7fff_ffff_fff8, true),
            (0x7fff_0000_0000, true),
            (0x1c, false),
            (usize::MAX, false),
        ] {
            for number in [0, 1, (1 << CLAIMANT_BITS) - 1] {
                let bits = ClaimantBits::of(number).expect("it fits");
                for sizes in fitting {
                    let short = ShortClaim::new(address, sizes, bits);
                    assert_eq!(short.is_some(), is_aligned, "{address:x} {sizes:?}");
                    let Some(short) = short else { continue };
                    assert_eq!((short.address(), short.claimant()), (address as u64, number));
                    assert_eq!(unpack_sizes(usize::try_from(short.sizes()).unwrap()), sizes);
                    for index in [0, 1, RegionNumber::COUNT - 1] {
                        let word = short.in_region(RegionNumber::of(index).expect("it fits"));
                        assert_eq!((word >> 63, RegionNumber::index_of(word)), (0, index));
                        assert_eq!(ShortClaim::of_word(word, short.region).word, short.word);
                    }
                    let same = match sizes.requested {
                        Some(requested) => {
                            ShortClaim::of_small(address, requested, sizes.usable, bits)
                        }
                        None => ShortClaim::of_found(address, sizes.usable, bits).expect("it fits"),
                    };
                    assert_eq!(same.word, short.word);
                }
                for sizes in others {
                    assert!(ShortClaim::new(address, sizes, bits).is_none(), "{sizes:?}");
                }
                assert!(ShortClaim::of_found(address, most + 1, bits).is_none());
            }
        }
        assert_eq!(ClaimantBits::of(1 << CLAIMANT_BITS), None);
        assert_eq!(RegionNumber::of(RegionNumber::COUNT), None);
    }
}
