//! Reference counted values: one block with several owners, counted by one of them. *Exact.*
//!
//! Who counts it is said on the field, `#[malloc_size_of(shared = …)]`; without that, whoever comes first in a collection does.
#![expect(unsafe_code, reason = "vouches for the block that the owners share")]

use alloc::rc::{self, Rc};
use alloc::sync::{self, Arc};
use core::alloc::Layout;
use core::ffi::CStr;

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Rc<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Rc::strong_count(self) + Rc::weak_count(self);
        // SAFETY: lent, so alive.
        if unsafe { counted::<T>(ops, self, owners) } {
            ops.add::<T>(self);
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
        let owners = Arc::strong_count(self) + Arc::weak_count(self);
        // SAFETY: lent, so alive; and not one of the statics.
        if !is_static(self) && unsafe { counted::<T>(ops, self, owners) } {
            ops.add::<T>(self);
        }
    }
}

impl<T: ?Sized> MallocShallowSizeOf for Arc<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let owners = Arc::strong_count(self) + Arc::weak_count(self);
        if !is_static(self) {
            // SAFETY: lent, so alive; and not one of the statics.
            unsafe { counted::<T>(ops, self, owners) };
        }
    }
}

/// Owns the block only when no strong owner is left, and then without the value, which is gone.
impl<T> MallocSizeOf for rc::Weak<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if self.strong_count() == 0 && !self.ptr_eq(&rc::Weak::new()) {
            // SAFETY: not the one that has no block, and a weak owner keeps the block alive.
            unsafe { left_over(ops, self.as_ptr()) };
        }
    }
}

/// Owns the block only when no strong owner is left, and then without the value, which is gone.
impl<T> MallocSizeOf for sync::Weak<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if self.strong_count() == 0 && !self.ptr_eq(&sync::Weak::new()) {
            // SAFETY: not the one that has no block, and a weak owner keeps the block alive.
            unsafe { left_over(ops, self.as_ptr()) };
        }
    }
}

/// Counts the block of a value behind `Rc` or `Arc`; says whether it is counted here.
///
/// # Safety
///
/// `value` is behind an `Rc` or `Arc` that owns a block.
unsafe fn counted<T: ?Sized>(ops: &Ops<'_>, value: &T, owners: usize) -> bool {
    // SAFETY: handed on.
    unsafe { shared(ops, core::ptr::from_ref(value).cast(), Layout::for_value(value), owners) }
}

/// Counts a block whose value is gone. Std does not say how many weak owners such a block has.
///
/// # Safety
///
/// `value` is where a value was behind a weak owner, which lives.
unsafe fn left_over<T>(ops: &Ops<'_>, value: *const T) {
    // SAFETY: handed on.
    unsafe { shared(ops, value.cast(), Layout::new::<T>(), usize::MAX) };
}

/// Counts the block with the value of this layout.
///
/// # Safety
///
/// As for [`counted`], whether or not the value is still there.
unsafe fn shared(ops: &Ops<'_>, value: *const u8, layout: Layout, owners: usize) -> bool {
    let Ok((whole, offset)) = two_counts().extend(layout) else { return false };
    let start = value.wrapping_sub(offset);
    if ops.finds_enclosing_blocks() {
        // Found by the table, whatever std's layout is.
        return ops.shared_enclosing_block(start, whole.size(), owners);
    }
    // SAFETY: std's layout of such a block, of which a test would notice a change, is C's for two counts and the value.
    unsafe { ops.shared_block(start, whole.pad_to_align(), owners) }
}

/// Where the counts of strong and weak owners are, before the value.
const fn two_counts() -> Layout {
    Layout::new::<[usize; 2]>()
}

/// Whether it is one of the values that std shares among all empty ones of a kind.
fn is_static<T: ?Sized>(value: &Arc<T>) -> bool {
    // They are empty, but for the end of a `CStr`. If std should make them anew each time, none is the same as a live one.
    size_of_val::<T>(value) <= 1 && {
        let start = start_of(value);
        start == start_of(&Arc::<str>::default()) || start == start_of(&Arc::<CStr>::default())
    }
}

/// The address of the counts.
fn start_of<T: ?Sized>(value: &Arc<T>) -> usize {
    let counts = two_counts().size().next_multiple_of(align_of_val::<T>(value));
    Arc::as_ptr(value).cast::<u8>().addr() - counts
}
