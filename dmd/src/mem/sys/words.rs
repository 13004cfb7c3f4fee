//! Reading words of this process: unchecked from memory that is there, and checked from any
//! address.
#![expect(unsafe_code, reason = "reads memory by address")]

use super::Current;
use super::system::{System, read_words_checked};

/// Returns the word in memory at this address. Padding and uninitialised bytes have some value too.
///
/// The caller ensures that the address is mapped: in a live block or value, or in a part of a stack
/// that is in use.
#[inline(always)]
pub(crate) fn word_at(address: usize) -> usize {
    word_from::<0>(address)
}

/// Returns the word that is `OFFSET` bytes from this address, as [`word_at`] does.
#[inline(always)]
pub(crate) fn word_from<const OFFSET: isize>(address: usize) -> usize {
    let word: usize;
    // In assembly, the compiler cannot assume that the bytes were ever written.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller ensures that the word is mapped; the instruction writes only a register.
    unsafe {
        std::arch::asm!("mov {}, [{} + {}]", out(reg) word, in(reg) address, const OFFSET, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let address = address.wrapping_add_signed(OFFSET);
    #[cfg(target_arch = "aarch64")]
    let address = if Current::tags_memory() { with_tag(address) } else { address };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller ensures that the word is mapped; the instruction writes only a register.
    unsafe {
        std::arch::asm!("ldr {}, [{}]", out(reg) word, in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = address;
        word = 0;
    }
    word
}

/// Returns the word that is `OFFSET` bytes from the sum of the address and the distance, as
/// [`word_at`] does. One instruction adds them, where the processor has such loads.
#[inline(always)]
pub(crate) fn word_beside<const OFFSET: isize>(address: usize, distance: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let word: usize;
        // SAFETY: the caller ensures that the word is mapped; the instruction writes only a
        // register.
        unsafe {
            std::arch::asm!("mov {}, [{} + {} + {}]", out(reg) word, in(reg) address, in(reg) distance, const OFFSET, options(nostack, readonly, preserves_flags));
        }
        word
    }
    #[cfg(not(target_arch = "x86_64"))]
    word_from::<OFFSET>(address.wrapping_add(distance))
}

/// Returns the return address that is `OFFSET` bytes from the sum of both, as [`word_beside`] does,
/// without the signature that a processor may have added.
#[inline(always)]
pub(crate) fn return_address_beside<const OFFSET: isize>(address: usize, distance: usize) -> usize {
    word_beside::<OFFSET>(address, distance) & Current::RETURN_ADDRESS
}

/// Returns the return address that is `OFFSET` bytes from this address, as [`word_from`] does,
/// without the signature that a processor may have added.
#[inline(always)]
pub(crate) fn return_address_from<const OFFSET: isize>(address: usize) -> usize {
    word_from::<OFFSET>(address) & Current::RETURN_ADDRESS
}

/// A comparison of pairs of words in memory with remembered ones.
#[derive(Clone, Copy)]
pub(crate) struct Comparison(Lanes);

/// All bits of a lane are set if its words are equal.
#[cfg(target_arch = "x86_64")]
type Lanes = std::arch::x86_64::__m128i;

/// The bits that differ.
#[cfg(not(target_arch = "x86_64"))]
type Lanes = usize;

impl Comparison {
    /// Compares the word at the address `first` and the word that ends at `end` with `expected`,
    /// which is read last: so the compiler can compare with memory.
    ///
    /// The caller ensures that both words are mapped, like those of [`word_at`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn of(first: usize, end: usize, expected: impl FnOnce() -> [usize; 2]) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_mm_cmpeq_epi32, _mm_set_epi64x};
            let words: Lanes;
            // SAFETY: the caller ensures that the words are mapped; the instructions write only a
            // register.
            unsafe {
                std::arch::asm!("movq {0}, [{1}]", "movhps {0}, [{2} - 8]", out(xmm_reg) words, in(reg) first, in(reg) end, options(nostack, readonly, preserves_flags));
            }
            let [low, high] = expected().map(|word| (word as u64).cast_signed());
            // SAFETY: every processor of this architecture has SSE2.
            let expected = unsafe { _mm_set_epi64x(high, low) };
            // SAFETY: as above.
            Comparison(unsafe { _mm_cmpeq_epi32(words, expected) })
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let [low, high] = expected();
            let end = end.wrapping_sub(size_of::<usize>());
            Comparison((word_at(first) ^ low) | (word_at(end) ^ high))
        }
    }

    /// Returns the comparison of the pairs of both.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn and(self, other: Self) -> Self {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of this architecture has SSE2.
        return Comparison(unsafe { std::arch::x86_64::_mm_and_si128(self.0, other.0) });
        #[cfg(not(target_arch = "x86_64"))]
        Comparison(self.0 | other.0)
    }

    /// Returns whether all words were equal.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_equal(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of this architecture has SSE2.
        return unsafe { std::arch::x86_64::_mm_movemask_epi8(self.0) } == 0xffff;
        #[cfg(not(target_arch = "x86_64"))]
        return self.0 == 0;
    }
}

/// Returns an address of mapped memory with the memory's tag.
#[cfg(target_arch = "aarch64")]
fn with_tag(address: usize) -> usize {
    let tagged: usize;
    // `ldg x9, [x9]`, which assemblers know only with an option.
    // SAFETY: the processor has the instruction, which writes only the register.
    unsafe {
        std::arch::asm!(".inst 0xd9600129", inout("x9") address => tagged, options(nostack, readonly, preserves_flags));
    }
    tagged
}

/// Reads the word at any address by a system call. Returns `None` if the address is not readable.
pub(crate) fn read_word_checked(address: usize) -> Option<u64> {
    let mut word = [0];
    (read_words_checked(address, &mut word) == 1).then_some(word[0] as u64)
}

/// Returns whether the word at this address is readable. The kernel checks it, so an unmapped
/// address causes no fault.
pub(crate) fn is_readable(address: usize) -> bool {
    read_words_checked(address, &mut [0]) == 1
}

/// Returns the address, which the compiler does not see to be the same. Otherwise a caller of a
/// function that returns its argument would keep the argument instead, and save registers for the
/// call; and a test of an index would become one of the number that the index is computed from.
#[inline(always)]
pub(crate) fn opaque(address: *mut u8) -> *mut u8 {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let same: *mut u8;
        #[expect(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction")]
        // SAFETY: no instruction, and the register keeps its value.
        unsafe {
            std::arch::asm!("/* {} */", inout(reg) address => same,
                options(pure, nomem, nostack, preserves_flags));
        }
        same
    }
    #[cfg(not(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64"))))]
    address
}

/// Returns `prediction` if it is `word`, and `None` otherwise. The processor goes on with it before
/// it has `word`: it predicts the branch, which alone waits for that.
#[inline(always)]
pub(crate) fn predicted(word: usize, prediction: usize) -> Option<usize> {
    // Before the comparison, after which the compiler may take one word for the other.
    let same = unknown(prediction);
    (word == prediction).then_some(same)
}

/// Returns the word, which the compiler does not see to be the same. It does not move this, either.
#[inline(always)]
fn unknown(word: usize) -> usize {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let same: usize;
        // SAFETY: no instruction, and the register keeps its value.
        unsafe {
            std::arch::asm!("/* {} */", inout(reg) word => same,
                options(nomem, nostack, preserves_flags));
        }
        same
    }
    #[cfg(not(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64"))))]
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_prediction_is_none() {
        for (word, prediction, expected) in [(7, 7, Some(7)), (7, 8, None), (0, usize::MAX, None)] {
            assert_eq!(predicted(word, prediction), expected);
        }
    }

    #[test]
    fn equal_words_do_not_differ() {
        let words = [0x1234_5678_9abc_def0_usize, 7, 8];
        let [first, _, third] =
            [0, 1, 2].map(|index| (&raw const words[index]).expose_provenance());
        let of = |expected| Comparison::of(first, third, || expected);
        let equal = of([words[0], 7]);
        assert!(equal.is_equal());
        for bit in 0..usize::BITS {
            for different in [of([words[0] ^ 1 << bit, 7]), of([words[0], 7 ^ 1 << bit])] {
                assert!(!different.is_equal(), "{bit}");
                assert!(!different.and(equal).is_equal() && !equal.and(different).is_equal());
            }
        }
    }

    #[test]
    fn unmapped_addresses_are_not_readable() {
        let local = 0_usize;
        assert!(is_readable((&raw const local).addr()));
        assert!(!is_readable(0));
        assert!(!is_readable(usize::MAX - 100));
    }
}
