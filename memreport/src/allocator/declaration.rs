//! Declares the program's global allocator, and queries the one that is declared.
#![expect(unsafe_code, reason = "the declared functions are queries about blocks")]

use core::fmt;

use super::counters::{HeapCounters, totals};
use super::size_source::{SizeSource, UsableSizeFn};
use super::statistics::HeapStatistics;
use super::system;
use crate::tracker::Tracker;

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
    ($($allocator:tt)*) => {
        $crate::__with_allocator!([$crate::__declare_counted] $($allocator)*);
    };
}

/// Brings the arguments of a `global_allocator!` to the form `(value): Type`, and passes them to the macro in brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_allocator {
    ([$($declare:tt)*]) => {
        $($declare)*! { (::std::alloc::System): ::std::alloc::System }
    };
    ([$($declare:tt)*] $allocator:path) => {
        $($declare)*! { ($allocator): $allocator }
    };
    ([$($declare:tt)*] $($name:ident)::+ ($($argument:tt)*) : $allocator:ty) => {
        $($declare)*! { ($($name)::+ ($($argument)*)): $allocator }
    };
    ([$($declare:tt)*] $value:path : $allocator:ty) => {
        $($declare)*! { ($value): $allocator }
    };
    ([$($declare:tt)*] ($value:expr) : $allocator:ty) => {
        $($declare)*! { ($value): $allocator }
    };
}

/// Declares an allocator whose blocks are counted and not tracked.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_counted {
    (($value:expr): $allocator:ty) => {
        $crate::__declare_allocator!(
            $crate::Counted<$allocator>,
            $crate::Counted::new($value),
            None
        );
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
pub(crate) fn usable_size_fn() -> Option<UsableSizeFn> {
    Some(declaration()?.usable_size)
}

/// The best that this program can say of blocks at the moment.
pub(crate) fn size_source() -> SizeSource {
    match declaration() {
        None => SizeSource::Layout,
        Some(Declaration { tracker: Some(tracker), .. }) if tracker.is_awake() => {
            SizeSource::Table(*tracker)
        }
        Some(declaration) => SizeSource::Allocator(declaration.usable_size),
    }
}

/// Returns the counters at this moment: exact if no thread allocates meanwhile. `None` if no allocator is declared.
#[must_use]
pub fn heap_counters() -> Option<HeapCounters> {
    is_declared().then(totals)
}
