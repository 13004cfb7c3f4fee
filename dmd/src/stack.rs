//! Call stacks: walking, caching and interning them.
//!
//! Read `thread`, `thread_slots` and `last_stacks` (per-thread state), `walk` (from registers to
//! frames), `stack_cache` (from the hash of a stack to its site), `own_code` (the tracker's
//! functions), `limits` (the threads and scopes that observers see) and `site` (interned stacks,
//! and the sites of new blocks). `models` checks what threads share under loom.
//!
//! Invariants:
//! * A walk neither allocates nor takes a lock. The exception is the reference unwinder on systems
//!   without `_dl_find_object`; see `walk/reference.rs`.
//! * A word of a stack is loaded only from the thread's own stack. Words of other stacks are copied
//!   by the kernel.
//! * A cached rule of code that may be unloaded is checked against its module each time.

#[cfg(not(loom))]
pub(crate) mod thread;
mod thread_slots;
#[cfg(not(loom))]
pub(crate) mod last_stacks;
#[cfg(not(loom))]
pub(crate) mod walk;
#[cfg(not(loom))]
pub(crate) mod own_code;
pub(crate) mod stack_cache;
#[cfg(not(loom))]
pub(crate) mod limits;
#[cfg(not(loom))]
pub(crate) mod site;
#[cfg(all(test, loom))]
mod models;

#[cfg(not(loom))]
pub use walk::{stack, stack_hash, unwinder_name};
