//! Call stacks: walking, caching and interning them.

pub(crate) mod thread;
pub(crate) mod walk;
pub(crate) mod stack_cache;
pub(crate) mod site;

pub use walk::{stack, unwinder_name};
