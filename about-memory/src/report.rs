//! Holds reports, differences and explanations as values, without input and output.

pub mod amount;
pub mod numbers;
pub mod order;
pub mod filter;
pub mod report_tree;
pub mod tree;
pub mod page;
pub mod diff;
pub mod budget;
pub mod resident;
pub(crate) mod unclassified;
pub mod notes;
