//! Reads the size of a glibc chunk from the word before the block, as `memreport` does.
//!
//! The layout is not documented, so the word is first compared with the size query's answer.
#![expect(unsafe_code, reason = "reads the word before a block")]

use memreport::__private::{CAN_READ_WORDS, is_tagged, read_word};

use super::{__libc_free, __libc_malloc, choose};

/// The flag of a chunk that is a mapping of its own, with a longer header.
const MAPPED: usize = 2;
const FLAGS: usize = 7;
const WORD: usize = size_of::<usize>();

/// Returns the usable bytes of a block, or `None` if the block is a mapping of its own.
///
/// # Safety
///
/// `block` is a live block of glibc's, and [`has_size_word`] has returned `true`.
#[inline]
pub(super) unsafe fn size_by_word(block: *const u8) -> Option<usize> {
    // SAFETY: the word before a block of glibc's.
    let word = unsafe { read_word(block.addr() - WORD) };
    (word & MAPPED == 0).then_some((word & !FLAGS) - WORD)
}

/// Returns whether the word before a block has its size.
pub(super) fn has_size_word() -> bool {
    const SIZES: [usize; 8] = [0, 24, 25, 100, 1000, 1032, 1033, 5000];
    CAN_READ_WORDS && SIZES.iter().all(|size| agrees(*size))
}

/// Returns whether the word before a new block of this size agrees with the query's answer.
fn agrees(size: usize) -> bool {
    // SAFETY: a plain call.
    let block = unsafe { __libc_malloc(size) };
    if block.is_null() {
        return false;
    }
    // SAFETY: live until the last line.
    let reported = unsafe { choose::usable_size(block.cast()) };
    // SAFETY: glibc's chunks begin before their blocks.
    let agrees =
        !is_tagged(block.addr()) && unsafe { size_by_word(block.cast()) } == Some(reported);
    // SAFETY: live, and not used after this.
    unsafe { __libc_free(block) };
    agrees
}
