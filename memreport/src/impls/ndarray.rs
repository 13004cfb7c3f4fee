//! Measures arrays of `ndarray` that own their elements, of up to six dimensions. *Exact with the
//! tracker*; without it the elements in view.
//!
//! An array that was sliced in place has only its remaining elements measured. An empty one is
//! a *lower bound*.

use ndarray::{Array, Dimension};

use crate::{MallocSizeOf, Ops};

/// Dimensions that are `Copy` have a static number of axes, and so own nothing.
impl<A: MallocSizeOf, D: Dimension + Copy> MallocSizeOf for Array<A, D> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let Some(first) = self.first() else { return };
        if size_of::<A>() > 0 {
            ops.enclosing_block(first, self.len().saturating_mul(size_of::<A>()));
        }
        ops.add_with(self, |array, ops| {
            ops.each_prefetched(array.iter(), |element| element.add_size_of_excluding_this(ops));
        });
    }
}
