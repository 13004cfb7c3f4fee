//! The table of live blocks: from an address to the packed word of its block.
//!
//! Read `packed_block` (one block in a word) and `epoch`, then `blocks` (the radix tree, and the
//! compact table of the blocks of a profile) with `records` (sizes that do not fit).
//! `freed_counts` counts freed blocks in cumulative mode. `tables` has the process's tables,
//! `models` checks them under loom, and `planted` has defects that a checker must find.
//!
//! Invariants:
//! * Only the owner of a block writes its word. Ageing and clearing tombstones use
//!   compare-and-exchange, and lose the race against the owner.
//! * A block is inserted after the allocator returned it, and removed before it is freed.

pub(crate) mod packed_block;
pub(crate) mod epoch;
pub(crate) mod records;
pub(crate) mod blocks;
#[cfg(not(loom))]
pub(crate) mod freed_counts;
#[cfg(not(loom))]
mod tables;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, planted))]
mod planted;

#[cfg(not(loom))]
pub(crate) use tables::{BLOCKS, FREED, granule, has_every_block, has_gaps, set_granule};
