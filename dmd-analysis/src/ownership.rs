//! The typed tree of a heap: which static owns which blocks, through which fields, and of which
//! types.
//!
//! A scan has the words of all blocks. With the layouts of types from debug information, a word is
//! known as a pointer that owns its block, or as one that only refers to it. From the statics on,
//! types follow typed fields. The strongest pointers to a block are its holders; among several, it
//! belongs to the nearest place that all of them belong to. So each block is in one row, and the
//! rows add up to the heap.

mod shape;
mod layout;
mod stack_places;
mod roots;
mod claims;
mod holders;
mod several;
mod rows;
mod contents;
mod tree;
mod measured;

pub use measured::{
    MeasureRules, MeasuredKind, MeasuredRoot, NeededTypes, RootChoice, ShareOf, measure,
    needed_types,
};
pub use tree::{OwnerChange, OwnerRow, OwnerTree, OwnerTreeOptions, RowKind, owner_difference};

#[cfg(test)]
mod tests;
