//! Computes the totals of all nodes, merges chains of single children, and adds
//! `heap-unclassified`.

use super::build::ReportTree;
use super::names::Span;
use super::node::{Node, NodeId, Presence};
use super::refusal::Refusal;
use crate::report::amount::Amount;
use crate::report::numbers::Unit;

impl ReportTree {
    /// Adds up every tree, once all reports are in.
    ///
    /// # Errors
    /// A tree contradicts itself: Firefox's page would refuse the file.
    pub fn total(&mut self) -> Result<(), Refusal> {
        // Backwards: a node comes before its children, so every child is complete before its
        // parent.
        for index in (0..self.nodes.len()).rev() {
            let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
            match self.nodes[index].children {
                0 => {}
                1 if self.nodes[index].parent.0 < NodeId::LAST => self.absorb(id),
                _ => self.sum(id)?,
            }
        }
        for process in 0..self.processes.len() {
            self.add_heap_unclassified(process);
        }
        self.check_units()
    }

    /// Merges a node with its only child, which is complete.
    fn absorb(&mut self, id: NodeId) {
        let child_id = self.node(id).first_child;
        let child = self.node(child_id);
        let (amount, description, merged) = (child.amount.clone(), child.description, child.merged);
        let (first_child, last_child, children) =
            (child.first_child, child.last_child, child.children);
        let node = &mut self.nodes[id.0 as usize];
        (node.amount, node.description) = (amount, description);
        (node.first_child, node.last_child, node.children) = (first_child, last_child, children);
        node.absorbed = child_id;
        if merged > 0 {
            node.merged = merged;
        }
    }

    fn sum(&mut self, id: NodeId) -> Result<(), Refusal> {
        let mut sum = Amount::Number(0.0);
        let mut child = self.node(id).first_child;
        while !child.is_none() {
            sum.add(&self.node(child).amount);
            child = self.node(child).next;
        }
        let node = &mut self.nodes[id.0 as usize];
        if node.amount == Amount::Undefined {
            node.amount = sum;
            return Ok(());
        }
        // One of two files has a leaf here and the other a tree. A child in neither file makes them
        // comparable.
        if !matches!(node.presence, Presence::First | Presence::Second) {
            return Err(Refusal::LeafAndTree { path: self.place(id) });
        }
        node.amount.add(&sum);
        node.presence = Presence::Both;
        let own = node.amount.minus(&sum);
        let unit = node.unit;
        self.add_fake_child(id, own, unit);
        Ok(())
    }

    fn add_fake_child(&mut self, id: NodeId, amount: Amount, unit: Unit) {
        let name = "(fake child)".into();
        let fake = self.find_child(id, name).unwrap_or_else(|| self.push_child(id, name, unit));
        let node = &mut self.nodes[fake.0 as usize];
        *node = Node {
            amount,
            unit,
            presence: Presence::Added,
            first_child: NodeId::NONE,
            last_child: NodeId::NONE,
            children: 0,
            absorbed: NodeId::NONE,
            merged: 0,
            description: Span::default(),
            ..node.clone()
        };
    }

    /// Adds the allocated memory that no report names.
    fn add_heap_unclassified(&mut self, process: usize) {
        let (Some(explicit), Some(allocated)) =
            (self.tree(process, "explicit"), self.flat(process, "heap-allocated"))
        else {
            return;
        };
        let name = "heap-unclassified".into();
        if self.find_child(explicit, name).is_some() {
            return;
        }
        let amount = self.node(allocated).amount.minus(&self.processes[process].heap_total);
        let described = "What the allocator has handed out beyond what the HEAP reports of this tree name; the \
                         allocator's rounding of unreported blocks is in it.";
        let description = self.descriptions.keep(described);
        let added = self.push_child(explicit, name, Unit::Bytes);
        self.nodes[added.0 as usize].description = description;
        self.nodes[added.0 as usize].amount = amount.clone();
        self.nodes[explicit.0 as usize].amount.add(&amount);
    }

    /// Returns a tree of a process by name.
    pub(crate) fn tree(&self, process: usize, name: &str) -> Option<NodeId> {
        self.find_child(NodeId::root_parent(process, false), name.into())
    }

    /// Returns a single measurement of a process by name.
    fn flat(&self, process: usize, name: &str) -> Option<NodeId> {
        self.find_child(NodeId::root_parent(process, true), name.into())
    }

    /// Checks that all visible nodes have the unit of their root, and that Firefox defines it.
    fn check_units(&self) -> Result<(), Refusal> {
        let mut is_absorbed = vec![false; self.nodes.len()];
        let mut roots: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
            let root =
                if node.parent.0 < NodeId::LAST { roots[node.parent.0 as usize] } else { id };
            roots.push(root);
            if !node.absorbed.is_none() {
                is_absorbed[node.absorbed.0 as usize] = true;
            }
            if is_absorbed[index] {
                continue;
            }
            if node.unit == Unit::Unknown {
                return Err(Refusal::UnknownUnits { path: self.place(id) });
            }
            let wanted = self.node(root).unit;
            if node.unit != wanted {
                return Err(Refusal::MixedUnits {
                    path: self.place(id),
                    unit: node.unit,
                    tree: wanted,
                });
            }
        }
        Ok(())
    }
}

impl ReportTree {
    /// Returns the path of a node and its process, for a message.
    fn place(&self, node: NodeId) -> String {
        format!("`{}` of {}", self.segments(node).join("/"), self.root_and_process(node).1)
    }
}
