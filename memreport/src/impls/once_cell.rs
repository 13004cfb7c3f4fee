//! Measures cells of `once_cell`. *Exact.* Captures of an initializer that has not run are not
//! counted: a *lower bound*.
#![expect(unsafe_code, reason = "vouches for the block of a `OnceBox`")]

use core::alloc::Layout;

use once_cell::race::{OnceBool, OnceBox, OnceNonZeroUsize};
use once_cell::{sync, unsync};

use crate::{MallocSizeOf, Ops};

owns_nothing!(OnceBool, OnceNonZeroUsize);

macro_rules! as_what_is_inside {
    ($(<$($param:ident: $bound:path)?> $cell:ty),* $(,)?) => {$(
        impl<T: MallocSizeOf $(, $param: $bound)?> MallocSizeOf for $cell {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                if let Some(value) = <$cell>::get(self) {
                    value.add_size_of_excluding_this(ops);
                }
            }
        }
    )*};
}

as_what_is_inside!(<> sync::OnceCell<T>, <> unsync::OnceCell<T>);
as_what_is_inside!(<F: FnOnce() -> T> sync::Lazy<T, F>, <F: FnOnce() -> T> unsync::Lazy<T, F>);

impl<T: MallocSizeOf> MallocSizeOf for OnceBox<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if let Some(value) = self.get() {
            // SAFETY: the value was stored in a box.
            unsafe { ops.block(value, Layout::for_value(value)) };
            ops.add(value);
        }
    }
}
