//! Bridges this crate's trait and the trait of the crate `malloc_size_of`, which Servo and Firefox
//! use.
//!
//! A field of a type that implements one trait can be measured in a type that implements the other.
//!
//! ```
//! use memreport::{MallocSizeOf, bridge};
//!
//! # type TheirList = Vec<u32>;
//! #[derive(MallocSizeOf)]
//! struct Style {
//!     name: String,
//!     #[malloc_size_of(with = bridge::theirs)]
//!     rules: TheirList, // implements `malloc_size_of::MallocSizeOf`
//! }
//!
//! impl malloc_size_of::MallocSizeOf for Style {
//!     fn size_of(&self, ops: &mut malloc_size_of::MallocSizeOfOps) -> usize {
//!         bridge::ours(self, ops)
//!     }
//! }
//!
//! # memreport::global_allocator!();
//! let style = Style { name: "heading".to_owned(), rules: vec![1; 100] };
//! assert_eq!(memreport::measure(&style).blocks, 2);
//! ```
#![expect(
    unsafe_code,
    reason = "their measuring asks through a function that has no place for a value"
)]

use core::cell::Cell;
use core::ffi::c_void;

use malloc_size_of::{MallocSizeOf as TheirMallocSizeOf, MallocSizeOfOps};

use super::ops::Ops;
use super::size_of::{MallocSizeOf, measure};
use super::this::SizeOfExcludingThis;

std::thread_local! {
    /// The `Ops` that the other trait's callbacks use at this moment, or null.
    static CURRENT: Cell<*const Ops<'static>> = const { Cell::new(core::ptr::null()) };
}

/// Measures a value by the other trait, for `#[malloc_size_of(with = memreport::bridge::theirs)]`.
///
/// Blocks that the implementation queries are counted one by one, and DMD records them as claims.
/// Bytes that it estimates count as *computed*. Without a declared allocator, only estimates count.
pub fn theirs<'a, T: ?Sized + TheirMallocSizeOf>(value: &'a T, ops: &Ops<'a>) {
    let _current = Current::enter(ops);
    let enclosing: Option<unsafe extern "C" fn(*const c_void) -> usize> =
        if ops.finds_enclosing_blocks() { Some(enclosing_size) } else { None };
    let mut their_ops = MallocSizeOfOps::new(block_size, enclosing, Some(Box::new(is_counted)));
    let before = ops.bytes();
    let estimate = value.size_of(&mut their_ops);
    let counted = ops.bytes() - before;
    if estimate > counted {
        ops.computed(estimate - counted);
    }
}

/// Measures a value by this crate's trait, from an implementation of the other one. Returns bytes.
///
/// Within a measurement of this crate, DMD records the value's blocks as claims.
pub fn ours<T: ?Sized + MallocSizeOf>(value: &T, _ops: &mut MallocSizeOfOps) -> usize {
    with_current(|ops| value.size_of_excluding_this(ops)).unwrap_or_else(|| measure(value).bytes)
}

/// A guard that makes `Ops` the current ones of this thread.
struct Current {
    outer: *const Ops<'static>,
}

impl Current {
    fn enter(ops: &Ops<'_>) -> Self {
        // The lifetime is erased. Values are only added by `measure_borrowed`, which does not use
        // it.
        let current = core::ptr::from_ref(ops).cast::<Ops<'static>>();
        let outer = CURRENT.try_with(|place| place.replace(current));
        Current { outer: outer.unwrap_or(core::ptr::null()) }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|place| place.set(self.outer));
    }
}

fn with_current<R>(query: impl FnOnce(&Ops<'static>) -> R) -> Option<R> {
    let current = CURRENT.try_with(Cell::get).ok().filter(|current| !current.is_null())?;
    // SAFETY: `Current` lives on this thread's stack and borrows the `Ops` for longer.
    Some(query(unsafe { &*current }))
}

/// Returns the bytes that `query` adds.
fn added(ops: &Ops<'_>, query: impl FnOnce(&Ops<'_>)) -> usize {
    let before = ops.bytes();
    query(ops);
    ops.bytes() - before
}

unsafe extern "C" fn block_size(start: *const c_void) -> usize {
    // SAFETY: the other trait's contract is that it queries starts of live blocks of the global
    // allocator.
    with_current(|ops| added(ops, |ops| unsafe { ops.malloc_size_of(start) })).unwrap_or(0)
}

unsafe extern "C" fn enclosing_size(inside: *const c_void) -> usize {
    with_current(|ops| added(ops, |ops| ops.enclosing_block(inside, 0))).unwrap_or(0)
}

fn is_counted(start: *const c_void) -> bool {
    with_current(|ops| !ops.is_counted_here(start)).unwrap_or(false)
}
