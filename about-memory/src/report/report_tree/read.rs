//! Reads a report tree: nodes, names and paths.

use super::build::ReportTree;
use super::names::{Name, shown_name};
use super::node::{Node, NodeId};

impl ReportTree {
    /// Returns all nodes, parents before children.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(NodeId::LAST)).map(NodeId)
    }

    /// Returns the first node whose path has more segments than `limit`.
    pub(crate) fn first_deeper_than(&self, limit: usize) -> Option<NodeId> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.nodes.len());
        self.ids().find(|&id| {
            // The parent of a root is no node.
            let above = depths.get(self.node(id).parent.0 as usize).copied().unwrap_or(0);
            depths.push(above + 1);
            above >= limit
        })
    }

    /// Returns the path of a node as in the file. Merged nodes are still separate here.
    pub(crate) fn segments(&self, node: NodeId) -> Vec<&str> {
        let mut segments = Vec::new();
        let mut at = node;
        while at.0 < NodeId::LAST {
            segments.push(self.node(at).name.span.of(&self.names));
            at = self.node(at).parent;
        }
        segments.reverse();
        segments
    }

    /// Returns the root of a node's tree, and its process.
    pub(crate) fn root_and_process(&self, node: NodeId) -> (NodeId, &str) {
        let mut root = node;
        while self.node(root).parent.0 < NodeId::LAST {
            root = self.node(root).parent;
        }
        let process = (u32::MAX - 1 - self.node(root).parent.0) / 2;
        (root, self.processes.get(process as usize).map_or("", |process| &process.name))
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn children_of(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let first = self.node(id).first_child;
        std::iter::successors((!first.is_none()).then_some(first), |&child| {
            let next = self.node(child).next;
            (!next.is_none()).then_some(next)
        })
    }

    /// Returns the name of a node as in the file, joined with the names of absorbed nodes.
    pub(crate) fn name(&self, id: NodeId) -> String {
        self.join_names(id, |name| name.span.of(&self.names).to_owned())
    }

    /// Returns the name for people; `None` if turning backslashes into slashes gives it.
    pub(crate) fn literal_name(&self, mut id: NodeId) -> Option<String> {
        let whole = id;
        loop {
            if self.node(id).name.is_literal {
                return Some(self.join_names(whole, |name| match name.is_literal {
                    true => name.span.of(&self.names).to_owned(),
                    false => shown_name(name.span.of(&self.names)).into_owned(),
                }));
            }
            id = self.node(id).absorbed;
            if id.is_none() {
                return None;
            }
        }
    }

    fn join_names(&self, mut id: NodeId, name: impl Fn(Name) -> String) -> String {
        let mut joined = name(self.node(id).name);
        while !self.node(id).absorbed.is_none() {
            id = self.node(id).absorbed;
            joined.push('/');
            joined.push_str(&name(self.node(id).name));
        }
        joined
    }

    pub(crate) fn description(&self, id: NodeId) -> &str {
        self.descriptions.get(self.node(id).description)
    }
}
