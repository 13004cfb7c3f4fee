//! A guard against a second copy of the tracker in one process, such as a plugin's own.
//!
//! The first copy that wakes claims a page at a fixed address. Later copies find the page and stay
//! asleep. Two awake copies would each track a part of the heap and overwrite each other's dumps.
#![expect(unsafe_code, reason = "shares a page with other copies of this code")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

use super::sys;

/// The address of the page.
///
/// It is below the range in which Linux places position-independent programs on x86-64 (from two
/// thirds of the address space on), and far from other mappings. The sanitizers' maps of the
/// address space (`asan_mapping.h`, `msan.h` and `tsan_platform.h` of LLVM's compiler-rt) leave it
/// to the program: `ThreadSanitizer` ends a program that wants a page elsewhere.
const ADDRESS: usize = 0x551d_3d00_0000;

/// The number of times that a zero is read before it is taken for a stranger's. In between another
/// thread may run: a copy that has mapped the page needs one instruction to write its word.
const READS: usize = 100;

/// The first word of a claimed page, in every version.
const MAGIC: u64 = u64::from_ne_bytes(*b"dmd copy");

/// The page. Other versions read it, so fields may only be added.
#[repr(C)]
struct Page {
    magic: AtomicU64,
    /// 1 if a copy has already reported that there are several.
    is_reported: AtomicU64,
    /// 1 if the first copy is preloaded, and has the blocks of all copies over `malloc`.
    tracks_malloc: AtomicU64,
}

/// The state of this copy.
static STATE: AtomicU8 = AtomicU8::new(UNCLAIMED);

const UNCLAIMED: u8 = 0;
const FIRST: u8 = 1;
const LATER: u8 = 2;

/// Claims the page for this copy. Returns `false` if another copy has it. The first hook calls it,
/// so it neither allocates nor waits.
pub(crate) fn is_first() -> bool {
    // AcqRel and Acquire, with each other and with the Release below: one thread of this copy
    // claims the page. Threads that race with it assume success, which is wrong only in a plugin,
    // and plugins are loaded by one thread.
    match STATE.compare_exchange(UNCLAIMED, FIRST, AcqRel, Acquire) {
        Ok(_) => {}
        Err(state) => return state == FIRST,
    }
    let is_first = claim();
    if !is_first {
        STATE.store(LATER, Release);
    }
    is_first
}

/// Returns whether another copy was awake before this one.
pub(crate) fn is_later() -> bool {
    // Acquire, with the Release in `is_first`.
    STATE.load(Acquire) == LATER
}

/// Notes that this copy, the first one, tracks `malloc`.
pub(crate) fn note_malloc() {
    if is_first() {
        // Relaxed: later copies are loaded later.
        page().tracks_malloc.store(1, Relaxed);
    }
}

/// Returns whether this copy must report that there are several: once in each process, if blocks
/// are in no dump for that reason.
pub(crate) fn must_report() -> bool {
    // Relaxed: the swap only elects one reporter.
    is_later()
        && page().tracks_malloc.load(Relaxed) == 0
        && page().is_reported.swap(1, Relaxed) == 0
}

fn claim() -> bool {
    if sys::map_at(ADDRESS, sys::PAGE) {
        // Relaxed: other copies read the word by a system call, which orders the accesses.
        page().magic.store(MAGIC, Relaxed);
        return true;
    }
    !is_claimed(ADDRESS)
}

/// Returns whether the page at this address is another copy's. Any other page is a stranger's, and
/// is not written.
fn is_claimed(address: usize) -> bool {
    for _ in 0..READS {
        match sys::read_word_checked(address) {
            // A copy may just have mapped the page.
            Some(0) => std::thread::yield_now(),
            word => return word == Some(MAGIC),
        }
    }
    false
}

/// Returns the page. Call it only after claiming the page or finding its magic.
fn page() -> &'static Page {
    // SAFETY: the claiming copy mapped the page and never unmaps it. All zeros is a valid `Page`,
    // and all its fields are atomics.
    unsafe { &*std::ptr::with_exposed_provenance::<Page>(ADDRESS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_claimed_once_and_has_the_magic() {
        assert_eq!(sys::read_word_checked(ADDRESS + sys::PAGE), None, "nothing is mapped there");
        // The test program's own tracker may have claimed it already.
        let was_first = is_first();
        assert_eq!(is_first(), was_first);
        assert_eq!(sys::read_word_checked(ADDRESS), Some(MAGIC));
        assert!(!claim(), "another copy sees that it is taken");
    }

    #[test]
    fn a_page_of_zeros_is_a_strangers() {
        let pages = sys::map(sys::PAGE).expect("there is memory");
        assert!(!is_claimed(pages.addr().get()));
        // SAFETY: the page was mapped above, and nothing refers to it.
        unsafe { sys::unmap(pages, sys::PAGE) };
    }
}
