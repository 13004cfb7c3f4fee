//! The tracker's own memory, tables that threads share, and the operating system.
//!
//! Read `sys` (system calls), then `lazy_slice` and `pages` (memory from the kernel), then the
//! tables over them: `concurrent_vec`, `interner`, `local_interner` and `radix_sort`.
//! `single_instance` and `signals` stand alone. `sync` chooses the atomics, `published` is a word
//! that orders others, `models` checks the shared tables under loom.
//!
//! Invariants:
//! * Nothing here allocates through Rust's global allocator in a hook: that would recurse.
//! * Memory that threads share is never unmapped, so references into it are `'static`.

pub(crate) mod sync;
pub(crate) mod sys;
pub(crate) mod published;
pub(crate) mod lazy_slice;
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
#[cfg(all(test, loom))]
pub(crate) mod models;
