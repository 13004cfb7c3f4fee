//! Several copies of the tracker in one process, as when a plugin brings its own: the first to wake claims a page at an
//! address that all copies know, and the others see it and sleep.
//!
//! Two that are awake would each know a part of the heap, and write a dump of it over the other's.
#![expect(unsafe_code, reason = "shares a page with other copies of this code")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

use super::sys;

/// Where the page is: far from where the system puts mappings unless it is asked to.
const ADDRESS: usize = 0x1d3d_0000_0000;

/// What begins the page of a copy, of whatever version.
const MAGIC: u64 = u64::from_ne_bytes(*b"dmd copy");

/// What the page holds. Other versions read it: it may only grow.
#[repr(C)]
struct Page {
    magic: AtomicU64,
    /// Whether somebody has said that there are several copies.
    said: AtomicU64,
}

/// What this copy has found.
static FOUND: AtomicU8 = AtomicU8::new(NOT_ASKED);

const NOT_ASKED: u8 = 0;
const FIRST: u8 = 1;
const LATER: u8 = 2;

/// Claims the page for this copy; `false` if another has it. Called from the first hook, so it neither allocates nor waits.
pub(crate) fn is_first() -> bool {
    // AcqRel, with itself: one thread of this copy asks the system. Others that come meanwhile take it for the first,
    // as it is but for plugins, and those are asked while they are loaded.
    match FOUND.compare_exchange(NOT_ASKED, FIRST, AcqRel, Acquire) {
        Ok(_) => {}
        Err(found) => return found == FIRST,
    }
    let is_first = claim();
    if !is_first {
        FOUND.store(LATER, Release);
    }
    is_first
}

/// Whether another copy was awake before this one.
pub(crate) fn is_later() -> bool {
    FOUND.load(Acquire) == LATER
}

/// Whether it is this copy that has to say that there are several. Once for each process.
pub(crate) fn is_to_report() -> bool {
    is_later() && page().said.swap(1, Relaxed) == 0
}

fn claim() -> bool {
    if sys::map_at(ADDRESS, sys::PAGE) {
        // Others read it by a system call, which orders it.
        page().magic.store(MAGIC, Relaxed);
        return true;
    }
    // A page that is still zero is that of a copy that has just mapped it. What is neither is a stranger's.
    match sys::own_word(ADDRESS) {
        Some(0 | MAGIC) => false,
        Some(_) | None => true,
    }
}

/// The page. Only for copies that have claimed it or found its magic.
fn page() -> &'static Page {
    // SAFETY: mapped by the copy that claimed it and never unmapped; all zeros is valid, and only atomics are in it.
    unsafe { &*std::ptr::with_exposed_provenance::<Page>(ADDRESS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_claimed_once_and_known_to_be_a_copys() {
        assert_eq!(sys::own_word(ADDRESS + sys::PAGE), None, "nothing is mapped there");
        // The test program's own tracker may have it already.
        let was_first = is_first();
        assert_eq!(is_first(), was_first);
        assert_eq!(sys::own_word(ADDRESS), Some(MAGIC));
        assert!(!claim(), "another copy sees that it is taken");
    }
}
