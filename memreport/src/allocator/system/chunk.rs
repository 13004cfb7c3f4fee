//! Reads the size of a glibc chunk from the word before the block, which is faster than a query.
//!
//! `malloc_usable_size` looks at the next chunk to find out whether this one is in use: a cache
//! miss. The chunk layout is not documented. So the word is first compared with the query's answer
//! for blocks of ten sizes. If any differs, every block is queried: another malloc was preloaded,
//! memory is tagged, or glibc has changed.
#![cfg(all(unix, not(target_vendor = "apple")))]
#![expect(unsafe_code, reason = "asks about blocks, or reads the word before them")]

use core::ffi::c_void;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use crate::tracker::words;

/// Flags are in the low bits of the word. This one marks a chunk that is a mapping of its own, with
/// a longer header.
const MAPPED: usize = 2;
const FLAGS: usize = 7;

const WORD: usize = size_of::<usize>();
/// The place of the word before a block.
#[expect(clippy::cast_possible_wrap, reason = "a small number")]
const BEFORE: isize = -(WORD as isize);

/// The result of the comparison: one of the constants below.
static SIZE_WORD: AtomicU8 = AtomicU8::new(UNDECIDED);

const UNDECIDED: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

/// Returns the usable bytes of a block.
///
/// # Safety
///
/// `block` is a live block of the C library's malloc.
#[inline]
pub(super) unsafe fn usable_size(block: *const u8) -> usize {
    if SIZE_WORD.load(Relaxed) == YES {
        // SAFETY: the caller's contract, and this malloc keeps such words.
        if let Some(size) = unsafe { size_by_word(block) } {
            return size;
        }
    }
    // SAFETY: the caller's contract.
    unsafe { usable_size_slowly(block) }
}

/// Returns the usable bytes of a block, also if nothing has been compared yet.
///
/// # Safety
///
/// The same as [`usable_size`].
// Not inlined: the quick way saves no registers then.
#[cold]
#[inline(never)]
unsafe fn usable_size_slowly(block: *const u8) -> usize {
    // SAFETY: the caller's contract, and this malloc keeps such words.
    let size = if has_size_word() { unsafe { size_by_word(block) } } else { None };
    // SAFETY: live, by the caller's contract. The function reads headers only.
    size.unwrap_or_else(|| unsafe { libc::malloc_usable_size(block.cast_mut().cast()) })
}

/// Returns the usable bytes of a block by the word before it, or `None` if the block is a mapping
/// of its own.
///
/// # Safety
///
/// `block` is a live block of the C library's malloc, and [`has_size_word`] is true.
#[inline]
pub(super) unsafe fn size_by_word(block: *const u8) -> Option<usize> {
    // SAFETY: the word before a block of a malloc that keeps such words.
    let word = unsafe { words::read_at::<BEFORE>(block.addr()) };
    (word & MAPPED == 0).then_some((word & !FLAGS) - WORD)
}

/// Returns whether the word before a block has its size.
#[inline]
pub(super) fn has_size_word() -> bool {
    // Relaxed: threads that come here at the same time get the same result.
    match SIZE_WORD.load(Relaxed) {
        YES => true,
        NO => false,
        _ => probe(),
    }
}

#[cold]
#[inline(never)]
fn probe() -> bool {
    const SIZES: [usize; 10] = [0, 1, 24, 25, 100, 1000, 1032, 1033, 5000, 100_000];
    let can_read = words::CAN_READ && cfg!(target_env = "gnu");
    let has_size_word = can_read && SIZES.iter().all(|size| agrees(*size));
    SIZE_WORD.store(if has_size_word { YES } else { NO }, Relaxed);
    has_size_word
}

/// Returns whether the word before a new block of this size agrees with the C library's answer.
fn agrees(size: usize) -> bool {
    // SAFETY: a plain call.
    let block: *mut c_void = unsafe { libc::malloc(size) };
    if block.is_null() {
        return false;
    }
    // SAFETY: live until the last line.
    let reported = unsafe { libc::malloc_usable_size(block) };
    let agrees = has_word_on_page(block.addr()) && !words::is_tagged(block.addr()) && {
        // SAFETY: an aligned word on the block's page, because blocks have a larger alignment.
        let word = unsafe { words::read_at::<BEFORE>(block.addr()) };
        word & MAPPED == 0 && (word & !FLAGS) == reported + WORD
    };
    // SAFETY: from malloc, and not used after this.
    unsafe { libc::free(block) };
    agrees
}

/// Returns whether the word before a block is on the same page: with any malloc, it is readable.
fn has_word_on_page(block: usize) -> bool {
    block % 4096 >= WORD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_on_the_page_before_is_not_read() {
        for (block, has_word) in [(0x5000, false), (0x5008, true), (0x5010, true), (0x5ff8, true)] {
            assert_eq!(has_word_on_page(block), has_word, "{block:x}");
        }
    }

    #[test]
    fn a_size_that_is_read_is_the_size_that_is_said() {
        let mut sizes: Vec<usize> = (0..2000).collect();
        sizes.extend((11..28).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
        for size in sizes {
            // SAFETY: a plain call.
            let block = unsafe { libc::malloc(size) };
            assert!(!block.is_null(), "{size} bytes");
            // SAFETY: live.
            let reported = unsafe { libc::malloc_usable_size(block) };
            // SAFETY: live.
            let read = unsafe { usable_size(block.cast()) };
            assert_eq!(read, reported, "{size} bytes");
            // SAFETY: not used any more.
            unsafe { libc::free(block) };
        }
        assert_eq!(has_size_word(), words::CAN_READ && cfg!(target_env = "gnu"));
    }
}
