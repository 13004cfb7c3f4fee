//! The heap of a dump as viewers need it: rows of blocks that are alike, and their amounts.
//!
//! Estimates from samples are rounded here, once, so that all formats show the same numbers.

mod options;
mod model;
mod order;
pub(crate) mod table;
mod build;
mod accounts;
pub mod browse;
pub mod growth;
mod columns;
mod groups;
pub mod history;

#[cfg(test)]
pub(crate) mod tests;

pub use accounts::{AccountLine, Accounts};
pub use columns::columns;
pub use groups::{Group, GroupFrame};
pub use model::Heap;
pub use options::{Frames, HeapOptions, SampleLabel, StackKind, resource_attributes};

pub(crate) use model::{Amounts, HeapFrame, Kind, ModuleOffset, Process, Row, StackAmounts};
