//! Measures vectors of `smallvec`, in the value itself or in a block of their own. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block of a long vector")]

use smallvec::{Array, SmallVec};

use super::sequence::elements;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<A: Array> MallocShallowSizeOf for SmallVec<A> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        if self.spilled() {
            // SAFETY: a spilled vector owns a block for that many elements, and `as_ptr` is its
            // start.
            unsafe { elements(ops, self.as_ptr(), self.capacity()) };
        }
    }
}

impl<A: Array<Item: MallocSizeOf>> MallocSizeOf for SmallVec<A> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add(self.as_slice());
    }
}
