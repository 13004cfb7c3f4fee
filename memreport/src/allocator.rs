//! Declares the program's allocator once, and answers size queries about its blocks.

pub(crate) mod size_source;
#[cfg(feature = "std")]
mod statistics;
#[cfg(feature = "std")]
mod usable_size;
#[cfg(feature = "std")]
pub(crate) mod thread_end;
#[cfg(feature = "std")]
pub(crate) mod counters;
#[cfg(feature = "std")]
pub(crate) mod system;
#[cfg(any(feature = "jemalloc", feature = "mimalloc", feature = "snmalloc"))]
mod inner;
#[cfg(feature = "std")]
pub(crate) mod declaration;
#[cfg(feature = "std")]
pub(crate) mod loaded;

#[cfg(feature = "std")]
pub(crate) use statistics::HeapDivision;
#[cfg(feature = "std")]
pub use {
    statistics::{HeapRest, HeapStatistics},
    usable_size::{Counted, LayoutSizes, UsableSize},
};

use size_source::SizeSource;

impl SizeSource {
    /// Returns the best source that this program has at the moment.
    pub(crate) fn declared() -> Self {
        #[cfg(feature = "std")]
        return declaration::size_source();
        #[cfg(not(feature = "std"))]
        SizeSource::Layout
    }
}
