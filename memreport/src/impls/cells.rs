//! Cells: they own what is inside. *Exact*, or *busy* while a `RefCell` is mutably borrowed.

use core::cell::{Cell, OnceCell, RefCell};
#[cfg(feature = "std")]
use std::sync::OnceLock;

use crate::{MallocSizeOf, Ops};

/// What can be copied owns nothing. What cannot be copied, nobody may look at.
impl<T: Copy> MallocSizeOf for Cell<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

/// While it is mutably borrowed, it is *busy*: left out, and the outcome says so.
impl<T: ?Sized + MallocSizeOf> MallocSizeOf for RefCell<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self.try_borrow() {
            Ok(value) => ops.locked(value),
            Err(_) => ops.busy(),
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for OnceCell<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get().into_iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }
}

#[cfg(feature = "std")]
impl<T: MallocSizeOf> MallocSizeOf for OnceLock<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get().into_iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }
}
