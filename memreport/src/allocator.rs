//! Declares the program's allocator once, and answers size queries about its blocks.

pub(crate) mod words;
pub(crate) mod size_source;
#[cfg(feature = "std")]
mod statistics;
#[cfg(feature = "std")]
mod usable_size;
#[cfg(feature = "std")]
pub(crate) mod counters;
#[cfg(feature = "std")]
mod counted;
#[cfg(feature = "std")]
pub(crate) mod system;
#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
#[cfg(feature = "std")]
pub(crate) mod declaration;
#[cfg(feature = "std")]
pub(crate) mod loaded;

#[cfg(feature = "std")]
pub(crate) use statistics::HeapDivision;
#[cfg(feature = "std")]
pub use {
    counted::Counted,
    statistics::{HeapRest, HeapStatistics},
    usable_size::{LayoutSizes, UsableSize},
};
