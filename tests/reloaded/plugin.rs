//! A library that calls back from inside a frame whose size is chosen at compile time.
//!
//! Two such libraries, loaded in turn, have the same code at the same addresses, except for the
//! frame.

/// The size of the frame in bytes.
const SIZE: usize = if cfg!(big) { 4096 - 512 } else { 1024 };

/// A library with it is longer, and has its unwind information elsewhere.
#[cfg(wide)]
#[used]
static WIDE: [u8; 1 << 20] = [1; 1 << 20];

/// Calls `callback` with its argument, below that many frames.
#[unsafe(no_mangle)]
pub extern "C" fn call_back(depth: u32, callback: extern "C" fn(usize), argument: usize) {
    let mut frame = [0_u8; SIZE];
    std::hint::black_box(&mut frame);
    if depth == 0 {
        callback(argument);
    } else {
        call_back(depth - 1, callback, argument);
    }
    std::hint::black_box(&mut frame);
}
