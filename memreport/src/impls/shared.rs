//! Measures reference counted values: one block with several owners, counted by one of them.
//! *Exact.*
//!
//! A block that only weak owners keep is *exact with the tracker*, and without it a *lower bound*.
//! The attribute `#[malloc_size_of(shared = …)]` of a field selects the owner that counts. Without
//! it, the first owner that a collection visits does. If the only owner was visited, and another
//! thread clones it during the collection to where the collection comes later, the clone counts
//! again.
#![expect(unsafe_code, reason = "vouches for the block that the owners share")]

use alloc::rc::{self, Rc};
use alloc::sync::{self, Arc};
use core::alloc::Layout;
use core::ffi::CStr;
use core::pin::Pin;

use crate::measure::ops::OwningPointer;
use crate::{Lookahead, MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Rc<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.measure_pointee(self);
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.shared_contents(start_of::<T>(self), size_of_val::<T>(self) + two_counts().size());
    }

    #[inline]
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        ahead.pointee::<T>(self);
    }
}

impl<T: ?Sized + MallocSizeOf> OwningPointer for Rc<T> {
    #[inline]
    fn measure_pointee<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Rc::strong_count(self) + Rc::weak_count(self);
        // SAFETY: borrowed, so alive.
        if unsafe { counted::<T>(ops, self, owners) } {
            T::add_size_of_excluding_this(self, ops);
        }
    }
}

impl<T: ?Sized> MallocShallowSizeOf for Rc<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Rc::strong_count(self) + Rc::weak_count(self);
        // SAFETY: borrowed, so alive.
        unsafe { counted::<T>(ops, self, owners) };
    }
}

/// `Arc::<str>::default()` and the like for slices are statics, which own nothing.
impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Arc<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.measure_pointee(self);
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.shared_contents(start_of::<T>(self), size_of_val::<T>(self) + two_counts().size());
    }

    #[inline]
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        ahead.pointee::<T>(self);
    }
}

impl<T: ?Sized + MallocSizeOf> OwningPointer for Arc<T> {
    #[inline]
    fn measure_pointee<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Arc::strong_count(self) + Arc::weak_count(self);
        // SAFETY: borrowed, so alive, and not one of the statics.
        if !is_static::<T>(self) && unsafe { counted::<T>(ops, self, owners) } {
            T::add_size_of_excluding_this(self, ops);
        }
    }
}

impl<T: ?Sized> MallocShallowSizeOf for Arc<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Arc::strong_count(self) + Arc::weak_count(self);
        if !is_static::<T>(self) {
            // SAFETY: borrowed, so alive, and not one of the statics.
            unsafe { counted::<T>(ops, self, owners) };
        }
    }
}

macro_rules! as_not_pinned {
    ($($owner:ident),*) => {$(
        /// Measured like the pointer inside.
        impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Pin<$owner<T>> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                // SAFETY: a `Pin` has the layout of the pointer in it, as std guarantees. The value
                // is only read.
                let owner: &'a $owner<T> = unsafe { &*core::ptr::from_ref(self).cast() };
                owner.add_size_of_excluding_this(ops);
            }
        }
    )*};
}

as_not_pinned!(Rc, Arc);

/// Owns the block only if no strong owner remains. The value is gone then.
impl<T: ?Sized> MallocSizeOf for rc::Weak<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let value = self.as_ptr().cast::<u8>();
        if self.strong_count() == 0 && value.addr() != rc::Weak::<u8>::new().as_ptr().addr() {
            left_over(ops, value);
        }
    }
}

/// Owns the block only if no strong owner remains. The value is gone then.
impl<T: ?Sized> MallocSizeOf for sync::Weak<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let value = self.as_ptr().cast::<u8>();
        if self.strong_count() == 0 && value.addr() != sync::Weak::<u8>::new().as_ptr().addr() {
            left_over(ops, value);
        }
    }
}

/// Counts the block of a value behind `Rc` or `Arc`. Returns whether to measure the value here.
///
/// # Safety
///
/// `value` is behind an `Rc` or `Arc` that owns a block.
unsafe fn counted<T: ?Sized>(ops: &Ops<'_>, value: &T, owners: usize) -> bool {
    let layout = Layout::for_value(value);
    let Ok((whole, offset)) = two_counts().extend(layout) else { return false };
    let start = core::ptr::from_ref(value).cast::<u8>().wrapping_sub(offset);
    // SAFETY: std's layout of such a block is the C layout of two counts and the value. A test
    // detects a change.
    unsafe { ops.shared_block_or_enclosing(start, whole.pad_to_align(), owners) }
}

/// Counts a block whose value is gone. Its size and the number of its weak owners are unknown.
fn left_over(ops: &Ops<'_>, value: *const u8) {
    // The memory before the value is in the block, even if the value has no size.
    ops.shared_enclosing_block(value.wrapping_sub(1), two_counts().size(), usize::MAX);
}

/// The layout of the strong and weak counts before the value.
const fn two_counts() -> Layout {
    Layout::new::<[usize; 2]>()
}

/// Returns whether it is one of the statics that std shares among all empty values of a kind.
fn is_static<T: ?Sized>(value: &T) -> bool {
    // They are empty, except for the end of a `CStr`. If std creates them anew each time, none
    // equals a live one.
    size_of_val(value) <= 1 && {
        let start = start_of(value);
        start == start_of(&*Arc::<str>::default()) || start == start_of(&*Arc::<CStr>::default())
    }
}

/// Returns the address of the counts.
#[inline]
fn start_of<T: ?Sized>(value: &T) -> *const u8 {
    let counts = two_counts().size().next_multiple_of(align_of_val(value));
    core::ptr::from_ref(value).cast::<u8>().wrapping_sub(counts)
}
