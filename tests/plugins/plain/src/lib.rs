//! A plugin without DMD: it allocates on the system's allocator, and calls the program for more.
#![expect(unsafe_code, reason = "called by name")]

use std::cell::RefCell;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps blocks of its own, calls the program to make one below this frame, and returns the number
/// kept.
// SAFETY: no other function of this name exists in a program of these tests.
#[unsafe(no_mangle)]
pub extern "C" fn work(blocks: usize, call_back: extern "C" fn()) -> usize {
    call_back();
    KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        kept.extend((0..blocks).map(|number| vec![1; 100 + number]));
        let count = kept.len();
        kept.clear();
        count
    })
    .unwrap_or(0)
}
