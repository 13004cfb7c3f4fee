//! The tracker's own memory, tables that threads share, and the operating system.

pub(crate) mod sync;
pub(crate) mod sys;
pub(crate) mod pages;
pub(crate) mod concurrent_vec;
pub(crate) mod interner;
#[cfg(not(loom))]
pub(crate) mod local_interner;
#[cfg(not(loom))]
pub(crate) mod radix_sort;
pub(crate) mod single_instance;
#[cfg(not(loom))]
pub(crate) mod signals;
