//! Records moments, cycles and scopes of the program, and the reporter that a thread allocates for.

pub(crate) mod attribution;
pub(crate) mod on_alloc;
pub(crate) mod callback;
pub(crate) mod mark;
pub(crate) mod memory_event;
pub(crate) mod listeners;
pub(crate) mod cycle;
pub(crate) mod scope_table;
pub(crate) mod scope;
#[cfg(feature = "tracing")]
pub(crate) mod spans;
