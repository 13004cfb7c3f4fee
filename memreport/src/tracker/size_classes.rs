//! Size classes: which requests may have which usable bytes.

/// The unit of usable bytes.
pub(crate) const UNIT: usize = 16;

/// The number of units that have an entry.
const UNITS: usize = 254;

/// The most requests of a class, so that the slop of each is known to fit into seven bits.
const WIDEST: u8 = 127;

/// The size classes of an allocator.
#[derive(Debug)]
pub struct SizeClasses {
    /// By code: the number of requested sizes that have such usable bytes, the largest of which is
    /// the usable bytes. The first and the last code stand for no size.
    widths: [u8; UNITS + 2],
    /// By requested bytes in units, rounded up: the usable bytes, or 0 if they are not known or not
    /// the same for all such requests.
    usable: [u16; UNITS],
    /// True if some of them are known.
    tell_sizes: bool,
}

impl SizeClasses {
    /// No class is known.
    pub(crate) const NONE: Self =
        SizeClasses { widths: [0; UNITS + 2], usable: [0; UNITS], tell_sizes: false };

    /// The usable bytes of glibc's blocks: up to 31 bytes more than requested, for a header's word
    /// and the smallest chunk less one byte, or a rest of 16 bytes that is no chunk of its own.
    /// Aligned blocks may have more.
    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "no allocator is declared"))]
    pub(crate) const OF_HEADER: Self = {
        let mut widths = [32; UNITS + 2];
        (widths[0], widths[UNITS + 1]) = (0, 0);
        SizeClasses { widths, usable: [0; UNITS], tell_sizes: false }
    };

    /// Returns the classes of blocks whose usable bytes `class` returns for requests of each size.
    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "no allocator is declared"))]
    pub(crate) fn new(class: impl Fn(usize) -> Option<usize>) -> Self {
        let mut widths = [0; UNITS + 2];
        for size in 1..UNITS * UNIT {
            let Some(usable) = class(size) else { continue };
            let width = widths[1..=UNITS].get_mut(usable / UNIT);
            if let (Some(width), Ok(slop @ 0..WIDEST)) = (width, u8::try_from(usable - size)) {
                *width = (*width).max(slop + 1);
            }
        }
        let mut usable = [0; UNITS];
        for (units, usable) in usable.iter_mut().enumerate().skip(1) {
            let mut sizes = (units - 1) * UNIT + 1..=units * UNIT;
            let of_largest = class(units * UNIT);
            let is_narrow =
                |size| class(size).is_some_and(|usable| usable - size < usize::from(WIDEST));
            if sizes.all(|size| class(size) == of_largest && is_narrow(size)) {
                *usable = of_largest.and_then(|bytes| u16::try_from(bytes).ok()).unwrap_or(0);
            }
        }
        SizeClasses { widths, usable, tell_sizes: usable.iter().any(|usable| *usable != 0) }
    }

    /// Returns whether [`usable`](Self::usable) knows some sizes.
    #[inline(always)]
    pub(crate) fn tell_sizes(&self) -> bool {
        self.tell_sizes
    }

    /// Returns the usable bytes of a block of `size` requested bytes, without a large alignment, if
    /// they follow from these: less than 4 KiB, with a slop that fits into seven bits.
    #[inline(always)]
    pub(crate) fn usable(&self, size: usize) -> Option<usize> {
        // No block has so many bytes that the sum wraps around; then it is a size of no class.
        let units = size.wrapping_add(UNIT - 1) / UNIT;
        let usable = *self.usable.get(units)?;
        (usable != 0).then_some(usize::from(usable))
    }

    /// Returns whether a block of `size` requested bytes, without a large alignment, may have so
    /// many usable bytes. Where classes tell sizes, it has.
    #[inline(always)]
    pub(crate) fn may_have(&self, usable: usize, size: usize) -> bool {
        let width = self.widths.get(usable / UNIT + 1);
        width.is_some_and(|width| usable.wrapping_sub(size) < usize::from(*width))
    }

    /// Returns whether a block of `size` requested bytes has `usable` bytes, if a block at its
    /// address has had so many since the collection began. `code` is `usable / 16 + 1`, or 0 or 255
    /// for no size. The block has no large alignment.
    #[inline(always)]
    #[must_use]
    pub fn has(&self, code: u8, usable: usize, size: usize) -> bool {
        usable.wrapping_sub(size) < usize::from(self.widths[usize::from(code)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_its_class_alone() {
        let quarter = |size: usize| (size.next_power_of_two() / 8).max(UNIT);
        let class =
            |size: usize| (9..9000).contains(&size).then(|| size.next_multiple_of(quarter(size)));
        let classes = SizeClasses::new(class);
        for code in 0..=u8::MAX {
            let usable = usize::from(code).wrapping_sub(1).wrapping_mul(UNIT);
            for size in (0..5000).chain([isize::MAX.unsigned_abs(), usize::MAX]) {
                let is_class = class(size) == Some(usable) && code < 255;
                let is_narrow = usable.wrapping_sub(size) < usize::from(WIDEST);
                let expected = is_class && is_narrow;
                assert_eq!(classes.has(code, usable, size), expected, "{usable} {size}");
                assert_eq!(classes.may_have(usable, size), expected, "{usable} {size}");
            }
        }
    }

    #[test]
    fn the_usable_bytes_follow_where_all_sizes_of_a_unit_have_the_same() {
        // 8 and 16 are different classes, as jemalloc's; above 1000 nothing is known.
        let class = |size: usize| match size {
            0..=8 => Some(8),
            9..=1000 => Some(size.next_multiple_of(if size > 128 { 32 } else { 16 })),
            _ => None,
        };
        let classes = SizeClasses::new(class);
        for size in 0..5000 {
            let expected = class(size).filter(|_| (17..=992).contains(&size));
            assert_eq!(classes.usable(size), expected, "{size}");
            assert_eq!(SizeClasses::OF_HEADER.usable(size), None);
        }
        assert!(classes.tell_sizes() && !SizeClasses::OF_HEADER.tell_sizes());
        assert_eq!(classes.usable(usize::MAX), None);
    }

    #[test]
    fn a_header_has_31_bytes_of_slop_at_most() {
        let classes = SizeClasses::OF_HEADER;
        assert!(classes.has(3, 40, 40) && classes.has(3, 40, 9));
        assert!(!classes.has(3, 40, 8) && !classes.has(3, 40, 41));
        assert!(!classes.has(255, 4072, 4072) && !classes.has(0, 8, 8));
        assert!(classes.may_have(40, 9) && !classes.may_have(40, 8) && !classes.may_have(136, 40));
    }
}
