//! Measures boxes of values of any size, and `Cow`. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block of the box")]

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use core::alloc::Layout;
use core::pin::Pin;

use crate::measure::ops::OwningPointer;
use crate::{Lookahead, MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T: ?Sized> MallocShallowSizeOf for Box<T> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: the block of a box has the layout of its value, and there is none if that has no
        // size.
        unsafe { ops.block::<T>(&**self, Layout::for_value::<T>(self)) };
    }
}

/// Also implemented for boxed slices, text and trait objects. A `Box<dyn Trait>` is measurable if
/// `MallocSizeOf` is a supertrait of the trait.
impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Box<T> {
    #[inline(always)]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if core::mem::needs_drop::<T>() {
            ops.measure_pointee(self);
        } else {
            // Mostly numbers, which have no pointers.
            self.measure_pointee(ops);
        }
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.value::<T>(self);
    }

    #[inline]
    fn prefetch_option(value: Option<&Self>, ahead: Lookahead<'_>) {
        let nothing = (core::ptr::from_ref(&ahead).cast::<u8>(), 0);
        let of = |value: &Self| (core::ptr::from_ref::<T>(value).cast(), size_of_val::<T>(value));
        let (start, bytes) = value.map_or(nothing, of);
        ahead.contents(start, bytes);
    }

    #[inline]
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        ahead.pointee::<T>(self);
    }
}

impl<T: ?Sized + MallocSizeOf> OwningPointer for Box<T> {
    #[inline(always)]
    fn measure_pointee<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        T::add_size_of_excluding_this(self, ops);
    }
}

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Pin<Box<T>> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let value: &'a T = self.as_ref().get_ref();
        // SAFETY: the block of a box has the layout of its value, and there is none if that has no
        // size.
        unsafe { ops.block(value, Layout::for_value(value)) };
        ops.add(value);
    }
}

/// Borrowed values belong to their owner.
impl<B: ?Sized + ToOwned<Owned: MallocSizeOf>> MallocSizeOf for Cow<'_, B> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self {
            Cow::Borrowed(_) => {}
            Cow::Owned(owned) => owned.add_size_of_excluding_this(ops),
        }
    }
}
