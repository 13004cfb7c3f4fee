//! Collects reports in a tree: one node for each path of each process, and the totals of all nodes.
//!
//! This is the part of Firefox's page that takes reports one by one.

pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod build;
mod read;
mod totals;
mod file;
pub(crate) mod refusal;

pub use build::ReportTree;
pub use file::File;
pub use names::shown_name;
pub use node::Presence;
pub use refusal::{Refusal, ReportFault};
