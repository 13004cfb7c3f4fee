//! Reads the machine words of a value, to look up the blocks that it points to.
#![expect(
    unsafe_code,
    reason = "reads memory whose type is not known, by an instruction that the compiler does not see into"
)]

use core::marker::PhantomData;

/// Returns the aligned words of a value, first to last. Returns none where they cannot be read:
/// under Miri and on other processors.
///
/// The words are for look-ups only. Padding yields any value.
#[must_use]
pub fn words_of<T: ?Sized>(value: &T) -> Words<'_> {
    let start = core::ptr::from_ref(value).cast::<u8>().addr();
    let end = start + size_of_val(value);
    let next = start.next_multiple_of(size_of::<usize>());
    Words { next, end: if CAN_READ { end } else { next }, value: PhantomData }
}

/// Returns the aligned words of a value, except those within a part that is measured separately.
#[cfg(any(feature = "std", feature = "indexmap"))]
pub(crate) fn words_outside<'v, T, P>(
    value: &'v T,
    part: &P,
) -> impl Iterator<Item = usize> + Clone + 'v {
    let start = core::ptr::from_ref(part).addr();
    let hole = start..start + size_of::<P>();
    let words = words_of(value);
    let places = (words.next..).step_by(size_of::<usize>());
    places.zip(words).filter(move |(place, _)| !hole.contains(place)).map(|(_, word)| word)
}

/// An iterator over the words of a value. See [`words_of`].
#[derive(Clone, Debug)]
pub struct Words<'v> {
    next: usize,
    end: usize,
    /// Invariant: the memory between `next` and `end` is borrowed.
    value: PhantomData<&'v ()>,
}

impl<'v> Words<'v> {
    /// Returns the words of a live block that one of these words points to, as its owner.
    ///
    /// # Safety
    ///
    /// The value owns or shares a block of that start and size, so the block outlives the borrow.
    #[cfg(any(feature = "std", feature = "bytes", feature = "roaring"))]
    pub(crate) unsafe fn pointee(&self, start: usize, size: usize) -> Words<'v> {
        Words { next: start, end: if CAN_READ { start + size } else { start }, value: PhantomData }
    }
}

impl Iterator for Words<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let address = self.next;
        if address.saturating_add(size_of::<usize>()) > self.end {
            return None;
        }
        self.next += size_of::<usize>();
        // SAFETY: an aligned word of a borrowed value.
        Some(unsafe { read(address) })
    }

    #[inline]
    fn nth(&mut self, index: usize) -> Option<usize> {
        // Without it, the words before would be read as well.
        self.next = self.next.saturating_add(index.saturating_mul(size_of::<usize>()));
        self.next()
    }
}

/// Returns whether the memory of this block is tagged: the word before it has another tag, and a
/// read of it by this address would end the program.
#[must_use]
pub fn is_tagged(block: usize) -> bool {
    cfg!(target_arch = "aarch64") && block >> 56 != 0
}

/// True where [`read`] reads.
pub const CAN_READ: bool = cfg!(all(
    not(miri),
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
));

/// Reads one word. Uninitialised memory has some value when the processor loads it, and so has
/// memory that another thread changes. For the language, the call just returns a number.
///
/// # Safety
///
/// `address` is aligned for a word, and one may be read there.
#[cfg(all(not(miri), target_pointer_width = "64", target_arch = "x86_64"))]
#[inline]
#[must_use]
pub unsafe fn read(address: usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe { read_at::<0>(address) }
}

/// Reads the word that is `OFFSET` bytes from the address, as [`read`] does.
///
/// # Safety
///
/// The sum is aligned for a word, and one may be read there.
#[cfg(all(not(miri), target_pointer_width = "64", target_arch = "x86_64"))]
#[inline]
#[must_use]
pub(crate) unsafe fn read_at<const OFFSET: isize>(address: usize) -> usize {
    let word;
    // SAFETY: loads one readable word, by the caller's contract, and touches no memory, stack or
    // flags.
    unsafe {
        core::arch::asm!(
            "mov {word}, qword ptr [{address} + {offset}]",
            address = in(reg) address,
            offset = const OFFSET,
            word = lateout(reg) word,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Reads one word, on the other processor.
///
/// # Safety
///
/// `address` is aligned for a word, and one may be read there.
#[cfg(all(not(miri), target_pointer_width = "64", target_arch = "aarch64"))]
#[inline]
#[must_use]
pub unsafe fn read(address: usize) -> usize {
    let word;
    // SAFETY: loads one readable word, by the caller's contract, and touches no memory, stack or
    // flags.
    unsafe {
        core::arch::asm!(
            "ldr {word}, [{address}]",
            address = in(reg) address,
            word = lateout(reg) word,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Reads the word that is `OFFSET` bytes from the address, as [`read`] does.
///
/// # Safety
///
/// The sum is aligned for a word, and one may be read there.
#[cfg(not(all(not(miri), target_pointer_width = "64", target_arch = "x86_64")))]
#[cfg(feature = "std")]
#[cfg_attr(target_vendor = "apple", expect(dead_code, reason = "its allocator answers"))]
#[inline]
#[must_use]
pub(crate) unsafe fn read_at<const OFFSET: isize>(address: usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe { read(address.wrapping_add_signed(OFFSET)) }
}

/// Returns 0. Never called: words cannot be read here.
///
/// # Safety
///
/// None.
#[cfg(not(all(
    not(miri),
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[inline]
#[must_use]
pub unsafe fn read(_address: usize) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Padded {
        small: u8,
        first: usize,
        second: usize,
        last: u16,
    }

    #[test]
    fn whole_words_are_read_in_order() {
        let padded = Padded { small: 1, first: 0x1234, second: 0x5678, last: 2 };
        let words: Vec<usize> = words_of(&padded).collect();
        if CAN_READ {
            assert_eq!(words.len(), 4);
            assert_eq!(words[1..3], [padded.first, padded.second]);
            assert_eq!(
                (words[0] & 0xff, words[3] & 0xffff),
                (usize::from(padded.small), usize::from(padded.last))
            );
        } else {
            assert!(words.is_empty());
        }
    }

    #[test]
    fn what_is_smaller_than_a_word_has_none() {
        assert_eq!(words_of(&1_u32).count(), 0);
        assert_eq!(words_of(&()).count(), 0);
        assert_eq!(words_of(&[1_u8; 7]).count(), 0);
    }
}
