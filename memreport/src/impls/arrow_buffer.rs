//! Measures buffers of Arrow: shared memory of which each owner has a slice. *Exact with the
//! tracker*; without it the capacity of the buffer.
//!
//! A buffer counts once, however many arrays are slices of it. Memory that Arrow did not allocate
//! is not counted.

use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};

use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(
    arrow_buffer::i256,
    arrow_buffer::IntervalMonthDayNano,
    arrow_buffer::IntervalDayTime
);

impl MallocSizeOf for Buffer {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // The handle points to the counts. An empty slice does not point to the memory.
        let memory = self.data_ptr().as_ptr().cast_const();
        let words = words_of(self).chain([memory.addr()]);
        ops.shared_blocks_by_words(words, (memory, self.capacity()), self.strong_count());
    }
}

impl MallocSizeOf for MutableBuffer {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if self.capacity() > 0 {
            ops.enclosing_block(self.as_ptr(), self.capacity());
        }
    }
}

impl MallocSizeOf for BooleanBuffer {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.inner().add_size_of_excluding_this(ops);
    }
}

impl MallocSizeOf for NullBuffer {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.inner().add_size_of_excluding_this(ops);
    }
}

impl<T: ArrowNativeType> MallocSizeOf for ScalarBuffer<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.inner().add_size_of_excluding_this(ops);
    }
}

impl<O: ArrowNativeType> MallocSizeOf for OffsetBuffer<O> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.inner().inner().add_size_of_excluding_this(ops);
    }
}
