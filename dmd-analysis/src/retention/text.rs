//! The tree, groups, cycles and paths as text for a terminal.

mod columns;
mod cycles;
mod paths;
mod tree;
mod words;

pub use cycles::write_cycles;
pub use paths::write_why_alive;
pub use tree::{write_groups, write_tree};
