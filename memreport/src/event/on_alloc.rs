//! In whose name this thread allocates: an allocating wrapper's, and blocks born meanwhile count as reported by it; or the tracker's own.

use core::cell::Cell;

std::thread_local! {
    static REPORTER: Cell<u32> = const { Cell::new(0) };
}

/// Runs `allocate` with the blocks it makes marked as this reporter's; 0 is nobody.
pub(crate) fn marked<R>(reporter: u32, allocate: impl FnOnce() -> R) -> R {
    let before = REPORTER.try_with(|current| current.replace(reporter)).unwrap_or(0);
    let result = allocate();
    let _ = REPORTER.try_with(|current| current.set(before));
    result
}

/// The reporter in whose name this thread allocates now; 0 is nobody.
#[inline]
pub(crate) fn current() -> u32 {
    REPORTER.try_with(Cell::get).unwrap_or(0)
}

/// Stands for the tracker itself where a reporter's number is asked for. No reporter gets it.
pub const OWN: u32 = 0xffff;

/// Runs `work` with the blocks it makes marked as the tracker's own, which are in no sum: what it finds and writes must not
/// look like the program's when another collection begins meanwhile.
pub fn as_own<R>(work: impl FnOnce() -> R) -> R {
    marked(OWN, work)
}

/// The number of the reporter in whose name this thread allocates now; 0 is nobody.
#[inline]
#[must_use]
pub fn current_on_alloc() -> u32 {
    current()
}
