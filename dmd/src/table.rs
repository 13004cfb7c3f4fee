//! The table of live blocks: from an address to the packed word of its block.

pub(crate) mod packed_block;
pub(crate) mod epoch;
pub(crate) mod records;
pub(crate) mod blocks;
#[cfg(not(loom))]
pub(crate) mod freed_counts;
#[cfg(not(loom))]
mod tables;

#[cfg(not(loom))]
pub(crate) use tables::{BLOCKS, FREED, granule, set_spacing};
