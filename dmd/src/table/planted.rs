//! Defects that a checker must find before its silence counts: `cargo xtask sanitize` runs them.
//! They are built with `--cfg planted` alone, as tests, and into the program `stress`.
#![expect(unsafe_code, reason = "each function has undefined behaviour on purpose")]

use std::hint::black_box;
use std::sync::Barrier;

/// A word that threads share without any order.
#[derive(Clone, Copy)]
struct Shared(*mut u64);

// SAFETY: it is not safe to share. That is the defect.
unsafe impl Send for Shared {}

#[cfg_attr(test, test)]
#[cfg_attr(test, ignore = "a planted defect")]
pub(crate) fn two_threads_write_a_word() {
    let mut word = Box::new(0_u64);
    let shared = Shared(&raw mut *word);
    // Both threads live at the write. A thread that has ended may be ordered before another one's
    // start by the allocator's own order.
    let barrier = Barrier::new(2);
    let barrier = &barrier;
    let write = move || {
        let Shared(word) = { shared };
        barrier.wait();
        // SAFETY: the word lives. Another thread writes it too: the defect.
        unsafe { word.write(black_box(7)) };
    };
    std::thread::scope(|scope| {
        scope.spawn(write);
        scope.spawn(write);
    });
}

#[cfg_attr(test, test)]
#[cfg_attr(test, ignore = "a planted defect")]
pub(crate) fn a_freed_word_is_read() {
    let word = Box::new(7_u64);
    let place = black_box(&raw const *word);
    drop(word);
    // SAFETY: the block was freed: the defect.
    black_box(unsafe { place.read() });
}
