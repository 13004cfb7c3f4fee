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

/// Returns the return address that is `OFFSET` bytes from this address, as [`word_from`] does,
/// without the signature that a processor may have added.
#[inline(always)]
pub(crate) fn return_address_from<const OFFSET: isize>(address: usize) -> usize {
    word_from::<OFFSET>(address) & Current::RETURN_ADDRESS
}

/// Returns the bits that differ between a word and the one in memory, `OFFSET` bytes from this
/// address: 0 if they are equal.
///
/// The caller ensures that the address is mapped, like that of [`word_at`].
#[inline(always)]
pub(crate) fn differing_bits<const OFFSET: isize>(address: usize, word: usize) -> usize {
    // One instruction, which the compiler cannot turn into a comparison and a branch.
    #[cfg(target_arch = "x86_64")]
    {
        let mut bits = word;
        // SAFETY: the caller ensures that the word is mapped; the instruction writes a register.
        unsafe {
            std::arch::asm!("xor {}, [{} + {}]", inout(reg) bits, in(reg) address, const OFFSET, options(nostack, readonly));
        }
        bits
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        word_at(address.wrapping_add_signed(OFFSET)) ^ word
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_do_not_differ() {
        let words = [0x1234_5678_9abc_def0_usize, 7];
        let second = (&raw const words[1]).expose_provenance();
        assert_eq!(differing_bits::<0>(second, 7), 0);
        assert_eq!(differing_bits::<0>(second, 4), 3);
        assert_eq!(differing_bits::<-8>(second, words[0]), 0);
        assert_eq!(differing_bits::<-8>(second, words[0] ^ 1 << 63), 1 << 63);
    }

    #[test]
    fn unmapped_addresses_are_not_readable() {
        let local = 0_usize;
        assert!(is_readable((&raw const local).addr()));
        assert!(!is_readable(0));
        assert!(!is_readable(usize::MAX - 100));
    }
}
