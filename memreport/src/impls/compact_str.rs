//! Measures short text of `compact_str`, in the value itself or in a block of its own. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block of a long text")]

use compact_str::CompactString;

use crate::{MallocSizeOf, Ops};

impl MallocSizeOf for CompactString {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // With 32-bit words, a very large capacity is stored in front of the text, which then does
        // not begin at the start of its block. With 64-bit words it always does.
        if !self.is_heap_allocated() {
            return;
        }
        if cfg!(target_pointer_width = "64") {
            // SAFETY: on the heap, the text begins at the start of its block, which has at least
            // the capacity.
            unsafe { ops.block_of_at_least(self.as_ptr(), self.capacity()) };
        } else {
            ops.enclosing_block(self.as_ptr(), self.capacity());
        }
    }
}
