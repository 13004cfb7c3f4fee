//! Measures double-ended queues. *Exact with the tracker*; without it the size of the buffer by its
//! capacity.

use alloc::collections::VecDeque;

use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T> MallocShallowSizeOf for VecDeque<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = self.capacity().saturating_mul(size_of::<T>());
        if size_of::<T>() == 0 || bytes == 0 {
            return;
        }
        match self.front() {
            // The start of the buffer is not exposed, but every element is inside it.
            Some(element) => ops.enclosing_block(element, bytes),
            None => {
                let is_buffer = |offset, requested| offset == 0 && requested == bytes;
                if !ops.block_by_words(words_of(self), is_buffer) {
                    ops.computed(bytes);
                }
            }
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for VecDeque<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        let (front, back) = self.as_slices();
        ops.add(front);
        ops.add(back);
    }
}
