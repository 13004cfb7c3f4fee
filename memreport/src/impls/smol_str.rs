//! Measures short text of `smol_str`, in the value itself or shared. *Exact with the tracker*;
//! without it the length and the owners' counts.

use smol_str::SmolStr;

use crate::{MallocSizeOf, Ops};

impl MallocSizeOf for SmolStr {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if self.is_heap_allocated() {
            let counts = size_of::<[usize; 2]>();
            let bytes = (counts + self.len()).next_multiple_of(size_of::<usize>());
            ops.shared_enclosing_block(self.as_ptr(), bytes, usize::MAX);
        }
    }
}
