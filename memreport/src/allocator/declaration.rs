//! Declares the program's global allocator, and queries the declared one.
#![expect(unsafe_code, reason = "the declared functions are queries about blocks")]

use core::alloc::Layout;
use core::fmt;
use std::sync::OnceLock;

use super::counters::{HeapCounters, totals};
use super::size_source::{SizeSource, UsableSizeFn};
use super::statistics::HeapStatistics;
use super::system;
use crate::tracker::Tracker;
use crate::tracker::size_classes::SizeClasses;

/// Declares the program's global allocator, counts its blocks, and makes it answer size queries.
///
/// Without arguments it declares the system's allocator. A program declares one allocator in its
/// `main.rs`: this one, or `dmd::global_allocator!`.
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
///
/// * `global_allocator!(tikv_jemallocator::Jemalloc)` with the feature `jemalloc`
/// * `global_allocator!(mimalloc::MiMalloc)` with the feature `mimalloc`
/// * `global_allocator!(snmalloc_rs::SnMalloc)` with the feature `snmalloc`
/// * `global_allocator!(LayoutSizes(Mine::new()): LayoutSizes<Mine>)` with any allocator
#[macro_export]
macro_rules! global_allocator {
    ($($allocator:tt)*) => {
        $crate::__with_allocator!([$crate::__declare_counted] $($allocator)*);
    };
}

/// Normalizes the arguments of a `global_allocator!` to `(value): Type` and passes them to the
/// macro in brackets.
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

/// Declares the static and submits its functions. Both are made in one place, so they cannot
/// disagree.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_allocator {
    ($type:ty, $value:expr, $tracker:expr) => {
        const _: () = {
            #[global_allocator]
            static ALLOCATOR: $type = $value;

            unsafe fn usable_size(block: *const u8, layout: ::std::alloc::Layout) -> usize {
                // SAFETY: the caller passes a block of the global allocator, which is this one.
                unsafe { $crate::UsableSize::usable_size(&ALLOCATOR, block, layout) }
            }

            fn class(size: usize) -> ::core::option::Option<usize> {
                $crate::UsableSize::prepared_class(&ALLOCATOR, size)
            }

            fn statistics() -> ::core::option::Option<$crate::HeapStatistics> {
                $crate::UsableSize::statistics(&ALLOCATOR)
            }

            fn release_unused() {
                $crate::UsableSize::release_unused(&ALLOCATOR);
            }

            #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
            #[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
            #[used]
            static STAY_LOADED: extern "C" fn() = $crate::__private::stay_loaded;

            const READS_HEADER: bool = <$type as $crate::UsableSize>::READS_HEADER;
            const IS_MALLOC: bool = <$type as $crate::UsableSize>::IS_MALLOC;

            $crate::__private::submit! {
                // SAFETY: a program has only one `#[global_allocator]`, and it is the static above.
                unsafe {
                    $crate::__private::Declaration::new(
                        (usable_size, READS_HEADER, IS_MALLOC, class),
                        statistics,
                        release_unused,
                        $tracker,
                    )
                }
            }
        };
    };
}

/// The arguments of [`Declaration::new`] that are about sizes.
type SizeFunctions = (UsableSizeFn, bool, bool, fn(usize) -> Option<usize>);

/// The functions of the program's allocator. Only [`global_allocator!`](crate::global_allocator)
/// makes one.
#[derive(Clone, Copy)]
pub struct Declaration {
    usable_size: UsableSizeFn,
    /// True if that function reads the word before a block.
    reads_header: bool,
    /// True if the blocks are the C library's.
    is_malloc: bool,
    /// Returns the usable bytes of blocks by their requested bytes, as far as they are known.
    class: fn(usize) -> Option<usize>,
    statistics: fn() -> Option<HeapStatistics>,
    release_unused: fn(),
    tracker: Option<&'static dyn Tracker>,
}

impl Declaration {
    /// Creates a declaration.
    ///
    /// # Safety
    ///
    /// All functions belong to the `#[global_allocator]`, and so does the size query's
    /// [`READS_HEADER`](crate::UsableSize::READS_HEADER) and
    /// [`IS_MALLOC`](crate::UsableSize::IS_MALLOC). The fourth is its
    /// [`prepared_class`](crate::UsableSize::prepared_class). The tracker is notified of each of
    /// its blocks.
    #[doc(hidden)]
    pub const unsafe fn new(
        (usable_size, reads_header, is_malloc, class): SizeFunctions,
        statistics: fn() -> Option<HeapStatistics>,
        release_unused: fn(),
        tracker: Option<&'static dyn Tracker>,
    ) -> Self {
        Declaration {
            usable_size,
            reads_header,
            is_malloc,
            class,
            statistics,
            release_unused,
            tracker,
        }
    }
}

inventory::collect!(Declaration);

impl fmt::Debug for Declaration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Declaration").field("tracked", &self.tracker.is_some()).finish()
    }
}

/// Returns the declaration of this program's allocator, if there is one.
fn declaration() -> Option<&'static Declaration> {
    // Miri treats a C library size query about a Rust block as undefined behaviour.
    if cfg!(miri) { None } else { inventory::iter::<Declaration>().next() }
}

/// Returns whether the program declares its allocator, so that its blocks are counted.
pub(crate) fn is_declared() -> bool {
    declaration().is_some()
}

/// Returns the tracker of this program's allocator, asleep or awake.
#[must_use]
pub fn tracker() -> Option<&'static dyn Tracker> {
    declaration()?.tracker
}

/// Marks this thread as one of ours, if a tracker is declared.
#[cfg(unix)]
pub(crate) fn mark_own_thread() {
    if let Some(tracker) = tracker() {
        tracker.mark_own_thread();
    }
}

/// Returns the statistics of the program's allocator, if one is declared and has any.
pub(crate) fn statistics() -> Option<HeapStatistics> {
    (declaration()?.statistics)()
}

/// Makes the program's allocator and the C library's release their cached memory.
pub(crate) fn release_unused() {
    system::trim();
    if let Some(declaration) = declaration() {
        (declaration.release_unused)();
    }
}

/// Returns whether a tracker is awake.
pub(crate) fn is_tracking() -> bool {
    tracker().is_some_and(Tracker::is_awake)
}

/// Returns the bytes that count for a block: its usable size if an allocator is declared, otherwise
/// the size of its layout.
///
/// # Safety
///
/// `block` is a live block of the global allocator with this layout.
pub(crate) unsafe fn usable_size(block: *const u8, layout: Layout) -> usize {
    // SAFETY: the caller's contract, for a function that belongs to the global allocator.
    unsafe { size_query()(block, layout) }
}

/// Returns the function behind [`usable_size`], for many calls.
pub(crate) fn size_query() -> UsableSizeFn {
    declaration().map_or(|_, layout| layout.size(), |declaration| declaration.usable_size)
}

/// Returns whether the size query of the program's allocator reads the word before a block.
pub(crate) fn reads_header() -> bool {
    declaration().is_some_and(|declaration| declaration.reads_header)
}

/// Returns whether the size of each block of the program's allocator that lies in one of malloc's
/// heaps can be read by [`system::size_by_word`].
pub(crate) fn has_size_words() -> bool {
    declaration().is_some_and(|declaration| declaration.is_malloc) && system::has_size_words()
}

/// Returns the size classes of the program's allocator, as far as it knows them.
pub(crate) fn size_classes() -> &'static SizeClasses {
    static OF_CLASSES: OnceLock<SizeClasses> = OnceLock::new();
    match declaration() {
        Some(declaration) if declaration.reads_header => &SizeClasses::OF_HEADER,
        Some(declaration) => OF_CLASSES.get_or_init(|| SizeClasses::new(declaration.class)),
        None => &SizeClasses::NONE,
    }
}

/// Returns the best source of block sizes that this program has at the moment.
pub(crate) fn size_source() -> SizeSource {
    match declaration() {
        None => SizeSource::Layout,
        Some(Declaration { tracker: Some(tracker), .. }) if tracker.is_awake() => {
            SizeSource::Table(*tracker)
        }
        Some(declaration) => SizeSource::Allocator(declaration.usable_size),
    }
}

/// Returns the counters at this moment, or `None` if no allocator is declared. They are exact if no
/// thread allocates meanwhile.
#[must_use]
pub fn heap_counters() -> Option<HeapCounters> {
    is_declared().then(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_shows_whether_there_is_a_tracker() {
        let declaration = Declaration {
            usable_size: |_, layout| layout.size(),
            reads_header: false,
            is_malloc: false,
            class: |_| None,
            statistics: || None,
            release_unused: || {},
            tracker: None,
        };
        assert_eq!(format!("{declaration:?}"), "Declaration { tracked: false }");
    }
}
