//! Measures the chunks of arenas of `bumpalo`. *Exact with the tracker*; without it the requested
//! bytes.
//!
//! Blocks that the values in an arena own elsewhere are not counted.
#![expect(unsafe_code, reason = "looks where an arena's chunks are")]

use bumpalo::Bump;

use crate::{MallocSizeOf, Ops};

impl MallocSizeOf for Bump {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: an arena is not shared between threads, and nothing is allocated in it during
        // this call. The chunks are not read.
        let chunks = unsafe { self.iter_allocated_chunks_raw() };
        let inside = chunks.map(|(start, _)| start.cast_const());
        ops.enclosing_blocks(inside, self.allocated_bytes_including_metadata());
    }
}
