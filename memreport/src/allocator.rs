//! The program's allocator: declared once, so that asking it about blocks can never ask the wrong one.
#![expect(unsafe_code, reason = "a global allocator and its size queries are unsafe by nature")]

mod chunk;
mod statistics;
pub(crate) mod glibc;
mod system;
#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;

use core::alloc::Layout;
use core::fmt;
use std::alloc::GlobalAlloc;

use crate::counters;
use crate::ops::{Sizes, UsableSizeFn};
use crate::tracker::Tracker;

pub(crate) use statistics::HeapDivision;
pub use statistics::{HeapRest, HeapStatistics};

/// An allocator that can say how much of a block may be used.
///
/// # Safety
///
/// `usable_size` gives at least the layout's size and at most what lies between this block and the next, and it gives
/// the same number from the block's birth to its end. Live blocks of at least 16 bytes never start within the same
/// aligned [`SPACING`](Self::SPACING) bytes.
pub unsafe trait UsableSize: GlobalAlloc {
    /// How far apart blocks of at least 16 bytes start, in bytes: 16, or 32 where the allocator has no smaller chunk.
    const SPACING: usize = 16;

    /// The bytes that may be used of a block, slop included.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator. `layout` is the one that it has now, or that of `()` if unknown.
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize;

    /// What the allocator says of itself, if it can. It is asked between reporters, and may take locks of its own.
    fn statistics(&self) -> Option<HeapStatistics> {
        None
    }

    /// Gives free memory that it keeps back to the system, where it can be told to.
    fn give_back(&self) {}
}

/// An allocator that cannot say how big its blocks are: their layouts stand in, so slop is not seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayoutSizes<A>(pub A);

// SAFETY: handed on unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LayoutSizes<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: handed on.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: handed on.
        unsafe { self.0.realloc(block, layout, new_size) }
    }
}

// SAFETY: what was asked for may always be used, and blocks do not overlap.
unsafe impl<A: GlobalAlloc> UsableSize for LayoutSizes<A> {
    unsafe fn usable_size(&self, _block: *const u8, layout: Layout) -> usize {
        layout.size()
    }
}

/// An allocator whose blocks are counted, and nothing else: what [`global_allocator!`](crate::global_allocator) declares.
#[derive(Debug, Default)]
pub struct Counted<A> {
    inner: A,
}

impl<A> Counted<A> {
    /// Counts the blocks of `inner`.
    pub const fn new(inner: A) -> Self {
        Counted { inner }
    }
}

// SAFETY: every call goes to the inner allocator with the arguments unchanged; counting neither allocates nor panics.
unsafe impl<A: UsableSize> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        let block = unsafe { self.inner.alloc(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.born(block, layout) };
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.born(block, layout) };
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block lives until the next line.
        counters::freed(unsafe { self.inner.usable_size(block, layout) });
        // SAFETY: handed on.
        unsafe { self.inner.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block lives until the next line.
        let before = unsafe { self.inner.usable_size(block, layout) };
        // SAFETY: handed on.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            counters::freed(before);
            // SAFETY: the caller of `realloc` vouches that the size fits the alignment.
            let layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
            // SAFETY: fresh from the inner allocator.
            unsafe { self.born(moved, layout) };
        }
        moved
    }
}

impl<A: UsableSize> Counted<A> {
    /// # Safety
    ///
    /// `block` is null or a live block of the inner allocator with this layout.
    #[inline]
    unsafe fn born(&self, block: *mut u8, layout: Layout) {
        if !block.is_null() {
            // SAFETY: live, by the caller's promise.
            counters::allocated(unsafe { self.inner.usable_size(block, layout) });
        }
    }
}

// SAFETY: the inner allocator's answers about the inner allocator's blocks.
unsafe impl<A: UsableSize> UsableSize for Counted<A> {
    const SPACING: usize = A::SPACING;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: handed on.
        unsafe { self.inner.usable_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        self.inner.statistics()
    }

    fn give_back(&self) {
        self.inner.give_back();
    }
}

/// Declares the program's global allocator, so that sizes are asked of it and its blocks are counted.
///
/// Without arguments it is the system's. A program declares one allocator, this one or that of `dmd`, in its `main.rs`.
///
/// ```
/// memreport::global_allocator!();
/// # fn main() {
/// let list = vec![1_u8; 33];
/// // glibc rounds 33 bytes up to 40.
/// assert!(memreport::measure(&list).bytes >= 33);
/// # }
/// ```
///
/// Another allocator is named by the path of its unit struct, or by a value and its type:
/// `global_allocator!(tikv_jemallocator::Jemalloc)` with the feature `jemalloc`, `global_allocator!(mimalloc::MiMalloc)` with
/// the feature `mimalloc`, `global_allocator!(LayoutSizes(Mine::new()): LayoutSizes<Mine>)` with any.
#[macro_export]
macro_rules! global_allocator {
    () => {
        $crate::global_allocator!((::std::alloc::System): ::std::alloc::System);
    };
    ($allocator:path) => {
        $crate::global_allocator!($allocator: $allocator);
    };
    ($($name:ident)::+ ($($argument:tt)*) : $allocator:ty) => {
        $crate::global_allocator!(($($name)::+ ($($argument)*)): $allocator);
    };
    ($value:path : $allocator:ty) => {
        $crate::global_allocator!(($value): $allocator);
    };
    (($value:expr) : $allocator:ty) => {
        $crate::__declare_allocator!($crate::Counted<$allocator>, $crate::Counted::new($value), None);
    };
}

/// The one place that declares: the static and the knowledge of it are made together, so they cannot disagree.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_allocator {
    ($type:ty, $value:expr, $tracker:expr) => {
        const _: () = {
            #[global_allocator]
            static ALLOCATOR: $type = $value;

            unsafe fn usable_size(block: *const u8, layout: ::std::alloc::Layout) -> usize {
                // SAFETY: the caller's promise: a block of the global allocator, and that is this one.
                unsafe { $crate::UsableSize::usable_size(&ALLOCATOR, block, layout) }
            }

            fn statistics() -> ::core::option::Option<$crate::HeapStatistics> {
                $crate::UsableSize::statistics(&ALLOCATOR)
            }

            fn give_back() {
                $crate::UsableSize::give_back(&ALLOCATOR);
            }

            #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
            #[used]
            static STAY_LOADED: extern "C" fn() = $crate::__private::stay_loaded;

            $crate::__private::submit! {
                // SAFETY: there is only one `#[global_allocator]` in a program, and it is the static above.
                unsafe {
                    $crate::__private::Declaration::new(usable_size, statistics, give_back, $tracker)
                }
            }
        };
    };
}

/// The knowledge of which allocator is the program's. Made by [`global_allocator!`](crate::global_allocator) alone.
#[derive(Clone, Copy)]
pub struct Declaration {
    usable_size: UsableSizeFn,
    statistics: fn() -> Option<HeapStatistics>,
    give_back: fn(),
    tracker: Option<&'static dyn Tracker>,
}

impl Declaration {
    /// # Safety
    ///
    /// All functions are those of the `#[global_allocator]`, and the tracker is told of every block of it.
    #[doc(hidden)]
    pub const unsafe fn new(
        usable_size: UsableSizeFn,
        statistics: fn() -> Option<HeapStatistics>,
        give_back: fn(),
        tracker: Option<&'static dyn Tracker>,
    ) -> Self {
        Declaration { usable_size, statistics, give_back, tracker }
    }
}

inventory::collect!(Declaration);

impl fmt::Debug for Declaration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Declaration").field("tracked", &self.tracker.is_some()).finish()
    }
}

/// The declaration of this program's allocator, if there is one.
fn declaration() -> Option<&'static Declaration> {
    // Miri calls a question about a Rust block to the C library undefined behaviour.
    if cfg!(miri) { None } else { inventory::iter::<Declaration>().next() }
}

/// Whether the program declares its allocator, so that its blocks are counted.
pub(crate) fn is_declared() -> bool {
    declaration().is_some()
}

/// The tracker of this program's allocator, asleep or awake.
#[must_use]
pub fn tracker() -> Option<&'static dyn Tracker> {
    declaration()?.tracker
}

/// What the program's allocator says of itself, if one is declared and can say.
pub(crate) fn statistics() -> Option<HeapStatistics> {
    (declaration()?.statistics)()
}

/// Has the program's allocator, and the C library's, give back what they keep.
pub(crate) fn give_back() {
    system::give_back();
    if let Some(declaration) = declaration() {
        (declaration.give_back)();
    }
}

/// Whether a tracker is awake.
pub(crate) fn is_tracking() -> bool {
    tracker().is_some_and(Tracker::is_awake)
}

/// How to ask the global allocator for the size of a block, if it is declared.
pub(crate) fn asked() -> Option<UsableSizeFn> {
    Some(declaration()?.usable_size)
}

/// The best that this program can say of blocks at the moment.
pub(crate) fn sizes() -> Sizes {
    match declaration() {
        None => Sizes::Layouts,
        Some(Declaration { tracker: Some(tracker), .. }) if tracker.is_awake() => {
            Sizes::Tracked(*tracker)
        }
        Some(declaration) => Sizes::Asked(declaration.usable_size),
    }
}
