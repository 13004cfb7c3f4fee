//! The stacks of a heap as a tree of calls: stacks that begin alike share their nodes.

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::heap::model::Heap;
use crate::heap::table::Table;

/// The nodes of the tree, each after its parent.
#[derive(Default)]
pub(super) struct CallTree<'h> {
    functions: Table<&'h str>,
    nodes: Vec<Node>,
    numbers: FxHashMap<Node, u32>,
}

/// A call of a function by another node, or as the outermost one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    parent: Option<u32>,
    function: u32,
}

impl<'h> CallTree<'h> {
    /// Adds the stacks of a heap. Returns the node of the innermost call of each.
    pub(super) fn stacks(&mut self, heap: &'h Heap) -> Vec<u32> {
        let frames: Vec<u32> =
            heap.frames.iter().map(|frame| self.functions.number(&frame.name)).collect();
        let of_stack = |stack: &[u32]| {
            let calls = stack.iter().rev();
            let inner =
                calls.fold(None, |parent, &frame| Some(self.node(parent, frames[frame as usize])));
            // No stack is empty.
            inner.unwrap_or(0)
        };
        heap.stacks.iter().map(AsRef::as_ref).map(of_stack).collect()
    }

    fn node(&mut self, parent: Option<u32>, function: u32) -> u32 {
        let node = Node { parent, function };
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(node).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        number
    }

    /// Returns the nodes as columns: the function of each, and the distance to its parent, which is
    /// small; 0 for an outermost call.
    pub(super) fn to_json(&self) -> Value {
        let nodes = (0_u32..).zip(&self.nodes);
        let up = nodes.map(|(number, node)| node.parent.map_or(0, |parent| number - parent));
        json!({
            "functions": self.functions.values(),
            "up": up.collect::<Vec<_>>(),
            "function": self.nodes.iter().map(|node| node.function).collect::<Vec<_>>(),
        })
    }
}
