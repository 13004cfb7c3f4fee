//! A library that is loaded and unloaded: calls back from inside a frame whose size is chosen when it is compiled, so that two
//! such libraries have the same code at the same addresses, but for the frame.

/// Bytes of the frame.
const SIZE: usize = if cfg!(big) { 4096 - 512 } else { 1024 };

/// Calls `callback` with its argument, from that many frames.
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
