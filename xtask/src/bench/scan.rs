//! Benchmarks of what is read from scans: retained sizes, and the typed tree.

pub(super) mod retained;
pub(super) mod tree;
