//! Reference counted values: one block with several owners, counted by one of them. *Exact.* The block that only weak owners
//! are left of is *exact with the tracker*, and without it a *lower bound*.
//!
//! Who counts it is said on the field, `#[malloc_size_of(shared = …)]`; without that, whoever comes first in a collection does.
#![expect(unsafe_code, reason = "vouches for the block that the owners share")]

use alloc::rc::{self, Rc};
use alloc::sync::{self, Arc};
use core::alloc::Layout;
use core::ffi::CStr;
use core::pin::Pin;

use crate::measure::ops::Behind;
use crate::{Lookahead, MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Rc<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_behind(self);
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.contents(start_of::<T>(self), size_of_val::<T>(self) + two_counts().size());
    }

    #[inline]
    fn prefetch_behind(&self, ahead: Lookahead<'_>) {
        ahead.behind::<T>(self);
    }
}

impl<T: ?Sized + MallocSizeOf> Behind for Rc<T> {
    #[inline]
    fn add_behind<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Rc::strong_count(self) + Rc::weak_count(self);
        // SAFETY: lent, so alive.
        if unsafe { counted::<T>(ops, self, owners) } {
            T::add_size_of_excluding_this(self, ops);
        }
    }
}

impl<T: ?Sized> MallocShallowSizeOf for Rc<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Rc::strong_count(self) + Rc::weak_count(self);
        // SAFETY: lent, so alive.
        unsafe { counted::<T>(ops, self, owners) };
    }
}

/// `Arc::<str>::default()` and its like for slices are statics: they own nothing.
impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Arc<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_behind(self);
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.contents(start_of::<T>(self), size_of_val::<T>(self) + two_counts().size());
    }

    #[inline]
    fn prefetch_behind(&self, ahead: Lookahead<'_>) {
        ahead.behind::<T>(self);
    }
}

impl<T: ?Sized + MallocSizeOf> Behind for Arc<T> {
    #[inline]
    fn add_behind<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Arc::strong_count(self) + Arc::weak_count(self);
        // SAFETY: lent, so alive; and not one of the statics.
        if !is_static::<T>(self) && unsafe { counted::<T>(ops, self, owners) } {
            T::add_size_of_excluding_this(self, ops);
        }
    }
}

impl<T: ?Sized> MallocShallowSizeOf for Arc<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Arc::strong_count(self) + Arc::weak_count(self);
        if !is_static::<T>(self) {
            // SAFETY: lent, so alive; and not one of the statics.
            unsafe { counted::<T>(ops, self, owners) };
        }
    }
}

macro_rules! as_not_pinned {
    ($($owner:ident),*) => {$(
        /// As what is not pinned.
        impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Pin<$owner<T>> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                // SAFETY: a `Pin` has the layout of the pointer in it, as std promises. The value is only looked at.
                let owner: &'a $owner<T> = unsafe { &*core::ptr::from_ref(self).cast() };
                owner.add_size_of_excluding_this(ops);
            }
        }
    )*};
}

as_not_pinned!(Rc, Arc);

/// Owns the block only when no strong owner is left, and then without the value, which is gone.
impl<T: ?Sized> MallocSizeOf for rc::Weak<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let value = self.as_ptr().cast::<u8>();
        if self.strong_count() == 0 && value.addr() != rc::Weak::<u8>::new().as_ptr().addr() {
            left_over(ops, value);
        }
    }
}

/// Owns the block only when no strong owner is left, and then without the value, which is gone.
impl<T: ?Sized> MallocSizeOf for sync::Weak<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let value = self.as_ptr().cast::<u8>();
        if self.strong_count() == 0 && value.addr() != sync::Weak::<u8>::new().as_ptr().addr() {
            left_over(ops, value);
        }
    }
}

/// Counts the block of a value behind `Rc` or `Arc`; says whether the value is to be measured here.
///
/// # Safety
///
/// `value` is behind an `Rc` or `Arc` that owns a block.
unsafe fn counted<T: ?Sized>(ops: &Ops<'_>, value: &T, owners: usize) -> bool {
    let layout = Layout::for_value(value);
    let Ok((whole, offset)) = two_counts().extend(layout) else { return false };
    let start = core::ptr::from_ref(value).cast::<u8>().wrapping_sub(offset);
    // SAFETY: std's layout of such a block is C's for two counts and the value; a test would notice a change.
    unsafe { ops.counted_block(start, whole.pad_to_align(), owners) }
}

/// Counts a block whose value is gone. Nobody knows its size any more, nor how many weak owners it has.
fn left_over(ops: &Ops<'_>, value: *const u8) {
    // What lies before the value is in the block, even where the value has no size.
    ops.shared_enclosing_block(value.wrapping_sub(1), two_counts().size(), usize::MAX);
}

/// Where the counts of strong and weak owners are, before the value.
const fn two_counts() -> Layout {
    Layout::new::<[usize; 2]>()
}

/// Whether it is one of the values that std shares among all empty ones of a kind.
fn is_static<T: ?Sized>(value: &T) -> bool {
    // They are empty, but for the end of a `CStr`. If std should make them anew each time, none is the same as a live one.
    size_of_val(value) <= 1 && {
        let start = start_of(value);
        start == start_of(&*Arc::<str>::default()) || start == start_of(&*Arc::<CStr>::default())
    }
}

/// Where the counts are.
#[inline]
fn start_of<T: ?Sized>(value: &T) -> *const u8 {
    let counts = two_counts().size().next_multiple_of(align_of_val(value));
    core::ptr::from_ref(value).cast::<u8>().wrapping_sub(counts)
}
