//! Measures values: the trait, the `Ops` that a measurement passes along, and the sums it returns.

pub(crate) mod measured;
pub(crate) mod known_blocks;
pub(crate) mod lookahead;
pub(crate) mod held;
pub(crate) mod ops;
pub(crate) mod size_of;
pub(crate) mod this;
pub(crate) mod traversal;
pub(crate) mod sizes;
pub(crate) mod guard;
#[cfg(feature = "malloc_size_of")]
pub mod bridge;
