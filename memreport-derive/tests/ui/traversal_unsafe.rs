//! Requires `unsafe` for a size function of the caller's, and for a value behind a raw pointer.
use std::ffi::c_void;

use memreport::Traversal;

unsafe fn malloc_size_of(_start: *const c_void) -> usize {
    0
}

fn main() {
    let traversal = Traversal::with_malloc_size_of(malloc_size_of);
    traversal.run(|ops| ops.add_including_this(&0));
}
