//! Allocators of other crates: the usable sizes of their blocks, and their statistics.

#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
#[cfg(feature = "snmalloc")]
mod snmalloc;
mod size_class;
