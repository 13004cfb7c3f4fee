//! Between this crate's trait and that of the crate `malloc_size_of`, which Servo and Firefox have: a field of a type that
//! implements one can be measured in a type that implements the other.
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

std::thread_local! {
    /// The `Ops` that their measuring asks through at this moment, or null.
    static CURRENT: Cell<*const Ops<'static>> = const { Cell::new(core::ptr::null()) };
}

/// Measures a value by their trait: for `#[malloc_size_of(with = memreport::bridge::theirs)]`.
///
/// Blocks that they ask about are counted one by one, and DMD hears of them. What they estimate is *computed*. Without a declared
/// allocator nothing can be asked, and only estimates count.
pub fn theirs<'a, T: ?Sized + TheirMallocSizeOf>(value: &'a T, ops: &Ops<'a>) {
    let _current = Current::enter(ops);
    let enclosing: Option<unsafe extern "C" fn(*const c_void) -> usize> =
        if ops.finds_enclosing_blocks() { Some(enclosing_size) } else { None };
    let mut their_ops = MallocSizeOfOps::new(block_size, enclosing, Some(Box::new(was_seen)));
    let before = ops.bytes();
    let said = value.size_of(&mut their_ops);
    let counted = ops.bytes() - before;
    if said > counted {
        ops.computed(said - counted);
    }
}

/// Measures a value by our trait: what an implementation of theirs says of it.
///
/// Within a measurement of ours, DMD hears of its blocks.
pub fn ours<T: ?Sized + MallocSizeOf>(value: &T, _ops: &mut MallocSizeOfOps) -> usize {
    with_current(|ops| value.size_of_excluding_this(ops)).unwrap_or_else(|| measure(value).bytes)
}

/// Makes `Ops` the current ones as long as it lives.
struct Current {
    outer: *const Ops<'static>,
}

impl Current {
    fn enter(ops: &Ops<'_>) -> Self {
        // The lifetime is put aside: values are only ever added by `now`, which asks for none.
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

fn with_current<R>(ask: impl FnOnce(&Ops<'static>) -> R) -> Option<R> {
    let current = CURRENT.try_with(Cell::get).ok().filter(|current| !current.is_null())?;
    // SAFETY: `Current` lives on this thread's stack, after `Ops` that are borrowed for longer.
    Some(ask(unsafe { &*current }))
}

/// What asking has added.
fn added(ops: &Ops<'_>, ask: impl FnOnce(&Ops<'_>)) -> usize {
    let before = ops.bytes();
    ask(ops);
    ops.bytes() - before
}

unsafe extern "C" fn block_size(start: *const c_void) -> usize {
    // SAFETY: they ask about starts of live blocks of the global allocator, as their trait demands.
    with_current(|ops| added(ops, |ops| unsafe { ops.malloc_size_of(start) })).unwrap_or(0)
}

unsafe extern "C" fn enclosing_size(inside: *const c_void) -> usize {
    with_current(|ops| added(ops, |ops| ops.enclosing_block(inside, 0))).unwrap_or(0)
}

fn was_seen(start: *const c_void) -> bool {
    with_current(|ops| !ops.is_counted_here(start)).unwrap_or(false)
}
