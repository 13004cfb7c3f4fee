//! Reads the statistics of glibc's malloc for all its arenas, by `mallinfo2`.
//!
//! glibc counts free chunks one by one, under each arena's lock. That takes microseconds as a rule,
//! and some milliseconds in a heap with many small holes.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(unsafe_code, reason = "looks up and calls a function of the C library")]

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

use crate::allocator::statistics::{HeapRest, HeapStatistics};

/// The overhead of a chunk in bytes: the word with its size.
const HEADER: u64 = size_of::<usize>() as u64;

/// Returns the statistics of the C library's own malloc for all its users. `None` if this is not
/// glibc, or a version before 2.33.
pub(crate) fn statistics() -> Option<HeapStatistics> {
    let found = mallinfo2()?;
    let number = |bytes: usize| bytes as u64;
    let committed = number(found.arena) + number(found.hblkhd);
    // `fordblks` is all free memory: chunks in the bins and fast bins, and the ends of the arenas.
    // Only the main arena's end is reported separately.
    let free = number(found.fordblks).min(committed);
    let page_cache = number(found.keepcost).min(free);
    Some(HeapStatistics {
        header: HEADER,
        page_cache,
        bin_unused: free - page_cache,
        rest: HeapRest::OtherCode,
        ..HeapStatistics::new("glibc", committed)
    })
}

/// The address of `mallinfo2`; null if the library has none.
static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

static IS_LOOKED_UP: AtomicBool = AtomicBool::new(false);

/// Looks up the function at run time: a program linked against it would not start on an older
/// system.
///
/// It takes the linker's lock, which a library's initialiser holds. So a collection calls it before
/// it takes a lock of its own. For the same reason there is no `OnceLock` here: two threads may
/// look it up.
pub(crate) fn look_up() -> *mut c_void {
    // Pairs with the release below.
    if !IS_LOOKED_UP.load(Acquire) {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        FUNCTION.store(found, Relaxed);
        // Pairs with the acquire above: the address comes first.
        IS_LOOKED_UP.store(true, Release);
    }
    FUNCTION.load(Relaxed)
}

fn mallinfo2() -> Option<libc::mallinfo2> {
    let function = look_up();
    if function.is_null() {
        return None;
    }
    // SAFETY: glibc's function of that name has this signature in every version that has it.
    let function = unsafe {
        core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> libc::mallinfo2>(function)
    };
    // SAFETY: any thread may call it at any time.
    Some(unsafe { function() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_and_used_are_all_that_is_committed() {
        let kept: Vec<Vec<u8>> = (0..100).map(|_| vec![0; 1000]).collect();
        let statistics = statistics().expect("this is glibc");
        assert!(statistics.in_use() >= 100_000, "{statistics:?}");
        assert_eq!(
            statistics.in_use() + statistics.page_cache + statistics.bin_unused,
            statistics.committed
        );
        drop(kept);
    }
}
