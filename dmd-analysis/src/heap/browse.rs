//! The heap as a tree: the blocks grouped by several axes, one within the other, in any order.
//!
//! Nodes that are too small to show are one node, `<other>`, which contains their number. So the
//! children of a node always add up to the node.

mod axes;
mod tree;
mod write;

pub use axes::{AXES, axes};
pub use tree::{Name, Node, browse};
pub use write::{write_json, write_text};

pub use crate::axis::{Axis, GroupBy};

/// The part of a heap that a tree shows, and its order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrowseOptions {
    /// The axes, the outermost first. See [`axes`] for those that a tree can be grouped by.
    pub by: Vec<Axis>,
    /// Keeps blocks with a frame that has this text in its name. Stacks begin at the outermost such
    /// frame.
    pub within: Option<String>,
    /// Keeps blocks of the type with this name.
    pub of_type: Option<String>,
    /// Keeps blocks of types with this text in their names.
    pub of_type_with: Option<String>,
    /// Keeps blocks in scopes with this text in their names, or inside such a scope.
    pub in_scope: Option<String>,
    /// The smallest share of the whole, in percent, that is a node of its own.
    pub min_percent: f64,
}

impl Default for BrowseOptions {
    fn default() -> Self {
        Self {
            by: vec![Axis::stack(), Axis::Type],
            within: None,
            of_type: None,
            of_type_with: None,
            in_scope: None,
            min_percent: 1.0,
        }
    }
}

impl BrowseOptions {
    /// Returns whether all blocks are kept.
    fn is_of_all(&self) -> bool {
        let is_of_any_type = self.of_type.is_none() && self.of_type_with.is_none();
        self.within.is_none() && is_of_any_type && self.in_scope.is_none()
    }
}
