//! Events of single blocks: the ring, journals of threads, and observers.

pub(crate) mod ring;
#[cfg(not(loom))]
pub(crate) mod journal;
#[cfg(not(loom))]
pub(crate) mod events;
#[cfg(not(loom))]
pub(crate) mod observers;
#[cfg(all(test, loom))]
mod models;
