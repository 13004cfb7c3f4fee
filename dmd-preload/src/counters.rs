//! The size of the heap, for code of the program that looks the function up.
#![expect(unsafe_code, reason = "is called by C")]

use std::ffi::c_int;

use memreport::heap_counters;

/// Writes the usable bytes and the number of the live blocks, the library's own among them.
/// Returns 1, or 0 if the library does not count them: the program's own tracker does.
///
/// # Safety
///
/// A number may be written to each place.
#[unsafe(no_mangle)]
unsafe extern "C" fn memreport_live_heap(bytes: *mut u64, blocks: *mut u64) -> c_int {
    let Some(counters) = heap_counters().filter(|_| crate::program::hooks().is_none()) else {
        return 0;
    };
    // SAFETY: the caller's contract.
    unsafe { bytes.write(counters.live_bytes()) };
    // SAFETY: as above.
    unsafe { blocks.write(counters.live_blocks()) };
    1
}
