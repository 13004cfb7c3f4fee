//! Vectors.
#![expect(unsafe_code, reason = "vouches for the blocks that these containers own")]

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};
use core::alloc::Layout;

impl<T> MallocShallowSizeOf for Vec<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let Ok(layout) = Layout::array::<T>(self.capacity()) else { return };
        // SAFETY: a vector with capacity owns a live block of this layout, and `as_ptr` is its start.
        unsafe { ops.block(self.as_ptr(), layout) };
    }
}

impl<T: MallocSizeOf> MallocSizeOf for Vec<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.add_shallow_size_of(ops);
        ops.add(self.as_slice());
    }
}

impl<T: MallocSizeOf> MallocSizeOf for [T] {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        for element in self {
            element.add_size_of_excluding_this(ops);
        }
    }
}
impl MallocSizeOf for u8 {
    fn add_size_of_excluding_this<'a>(&'a self, _: &Ops<'a>) {}
}
impl MallocSizeOf for u64 {
    fn add_size_of_excluding_this<'a>(&'a self, _: &Ops<'a>) {}
}
impl MallocSizeOf for &str {
    fn add_size_of_excluding_this<'a>(&'a self, _: &Ops<'a>) {}
}
impl MallocSizeOf for String {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let Ok(layout) = Layout::array::<u8>(self.capacity()) else { return };
        // SAFETY: a vector with capacity owns a live block of this layout, and `as_ptr` is its start.
        unsafe { ops.block(self.as_ptr(), layout) };
    }
}
impl<T: MallocSizeOf> MallocSizeOf for std::sync::Mutex<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self.try_lock() {
            Ok(guard) => ops.now(&*guard, |value, ops| ops.add(value)),
            Err(_) => ops.busy(),
        }
    }
}
impl<T: ?Sized + MallocSizeOf> MallocSizeOf for std::sync::Arc<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&**self);
    }
}
