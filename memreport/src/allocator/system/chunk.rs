//! Chunks of malloc: glibc keeps the size of a chunk in the word before the block, which is read faster than asked for.
//!
//! Asking costs more than the call: to find out whether a chunk is in use, glibc looks at the next one, which is far away
//! from all that the program is about to touch. How a chunk looks is not promised. So it is compared first with what is
//! said of a few blocks; should any differ (another malloc was preloaded, memory is tagged, glibc has changed), all are
//! asked about.
#![cfg(all(unix, not(target_vendor = "apple")))]
#![expect(unsafe_code, reason = "asks about blocks, or reads the word before them")]

use core::ffi::c_void;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use crate::allocator::words;

/// The low bits of the word are flags; this one says that the chunk is a mapping of its own, with a longer header.
const MAPPED: usize = 2;
const FLAGS: usize = 7;

const WORD: usize = size_of::<usize>();

/// Whether the word before a block is known to say its size.
static KNOWN: AtomicU8 = AtomicU8::new(UNDECIDED);

const UNDECIDED: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

/// The bytes that may be used of a block.
///
/// # Safety
///
/// It is a live block of the C library's malloc.
#[inline]
pub(crate) unsafe fn usable_size(block: *const u8) -> usize {
    if is_known() {
        // SAFETY: in front of a block of a malloc that has such words.
        let word = unsafe { words::read(block.addr() - WORD) };
        if word & MAPPED == 0 {
            return (word & !FLAGS) - WORD;
        }
    }
    // SAFETY: live, by the caller's promise. The function reads headers only.
    unsafe { libc::malloc_usable_size(block.cast_mut().cast()) }
}

#[inline]
fn is_known() -> bool {
    // Relaxed: threads that come here first at once find out the same.
    match KNOWN.load(Relaxed) {
        YES => true,
        NO => false,
        _ => find_out(),
    }
}

#[cold]
#[inline(never)]
fn find_out() -> bool {
    const SIZES: [usize; 10] = [0, 1, 24, 25, 100, 1000, 1032, 1033, 5000, 100_000];
    let can_read = words::CAN_READ && cfg!(target_env = "gnu");
    let is_known = can_read && SIZES.iter().all(|size| agrees(*size));
    KNOWN.store(if is_known { YES } else { NO }, Relaxed);
    is_known
}

/// Whether the word before a new block of this size says what the C library says.
fn agrees(size: usize) -> bool {
    // SAFETY: a plain call.
    let block: *mut c_void = unsafe { libc::malloc(size) };
    if block.is_null() {
        return false;
    }
    // SAFETY: live until the last line.
    let asked = unsafe { libc::malloc_usable_size(block) };
    // Whatever malloc this is, what lies before the block on the same page can be read.
    let is_on_page = block.addr() % 4096 >= WORD;
    let agrees = is_on_page && {
        // SAFETY: an aligned word on the block's page, since blocks are aligned further.
        let word = unsafe { words::read(block.addr() - WORD) };
        word & MAPPED == 0 && (word & !FLAGS) == asked + WORD
    };
    // SAFETY: from malloc, and not used after this.
    unsafe { libc::free(block) };
    agrees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_is_read_is_the_size_that_is_said() {
        let mut sizes: Vec<usize> = (0..2000).collect();
        sizes.extend((11..28).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
        for size in sizes {
            // SAFETY: a plain call.
            let block = unsafe { libc::malloc(size) };
            assert!(!block.is_null(), "{size} bytes");
            // SAFETY: live.
            let asked = unsafe { libc::malloc_usable_size(block) };
            // SAFETY: live.
            let read = unsafe { usable_size(block.cast()) };
            assert_eq!(read, asked, "{size} bytes");
            // SAFETY: not used any more.
            unsafe { libc::free(block) };
        }
        assert_eq!(is_known(), words::CAN_READ && cfg!(target_env = "gnu"));
    }
}
