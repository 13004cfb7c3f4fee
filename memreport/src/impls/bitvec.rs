//! Measures vectors and boxes of bits, of `bitvec`. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block of the bits")]

use bitvec::boxed::BitBox;
use bitvec::order::BitOrder;
use bitvec::store::BitStore;
use bitvec::vec::BitVec;

use super::sequence::elements;
use crate::{Lookahead, MallocSizeOf, Ops};

impl<T: BitStore, O: BitOrder> MallocSizeOf for BitVec<T, O> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // The bits may begin inside the first element.
        let skipped = usize::from(self.as_bitptr().bit().into_inner());
        let bits = if self.capacity() == 0 { 0 } else { self.capacity() + skipped };
        // SAFETY: a vector of this many elements, the first of which contains the first bit.
        unsafe { elements(ops, self.as_raw_slice().as_ptr(), bits / (8 * size_of::<T>())) };
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.block(self.as_raw_slice().as_ptr());
    }
}

impl<T: BitStore, O: BitOrder> MallocSizeOf for BitBox<T, O> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let all = self.as_raw_slice();
        // SAFETY: a boxed slice of these elements.
        unsafe { elements(ops, all.as_ptr(), all.len()) };
    }
}
