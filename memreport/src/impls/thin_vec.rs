//! Measures vectors of `thin-vec`. *Exact with the tracker*; without it the header and the
//! capacity.

use thin_vec::ThinVec;

use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T> MallocShallowSizeOf for ThinVec<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let header = size_of::<[usize; 2]>().max(align_of::<T>());
        let elements = self.capacity().saturating_mul(size_of::<T>());
        let bytes = if self.capacity() == 0 { 0 } else { header.saturating_add(elements) };
        ops.blocks_by_words(words_of(self), |_, _| true, bytes);
    }
}

impl<T: MallocSizeOf> MallocSizeOf for ThinVec<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add(self.as_slice());
    }
}
