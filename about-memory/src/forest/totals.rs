//! The totals of all nodes, and the trees as they are shown: chains of single kids made one, `heap-unclassified` added.

use super::{Forest, Node, NodeId, Presence, Process, Span};
use crate::amount::Amount;
use crate::numbers::Unit;
use crate::refusal::Refusal;

impl Forest {
    /// Adds up every tree, once all reports are in.
    ///
    /// # Errors
    /// Says where a tree contradicts itself: Firefox's page would refuse the file.
    pub fn total(&mut self) -> Result<(), Refusal> {
        // A node is made before its kids, so the way back meets every kid before its parent.
        for index in (0..self.nodes.len()).rev() {
            let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
            match self.nodes[index].kids {
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

    /// Makes one of a node and its only kid, which has been filled in.
    fn absorb(&mut self, id: NodeId) {
        let kid_id = self.node(id).first_kid;
        let kid = self.node(kid_id);
        let (amount, description, merged) = (kid.amount.clone(), kid.description, kid.merged);
        let (first_kid, last_kid, kids) = (kid.first_kid, kid.last_kid, kid.kids);
        let node = &mut self.nodes[id.0 as usize];
        (node.amount, node.description) = (amount, description);
        (node.first_kid, node.last_kid, node.kids) = (first_kid, last_kid, kids);
        node.absorbed = kid_id;
        if merged > 0 {
            node.merged = merged;
        }
    }

    fn sum(&mut self, id: NodeId) -> Result<(), Refusal> {
        let mut sum = Amount::Number(0.0);
        let mut kid = self.node(id).first_kid;
        while !kid.is_none() {
            sum.add(&self.node(kid).amount);
            kid = self.node(kid).next;
        }
        let node = &mut self.nodes[id.0 as usize];
        if node.amount == Amount::Undefined {
            node.amount = sum;
            return Ok(());
        }
        // One of two files has a leaf here and the other a tree. A kid that is in neither makes them comparable.
        if !matches!(node.presence, Presence::First | Presence::Second) {
            return Err(Refusal::LeafAndTree { path: self.place(id) });
        }
        node.amount.add(&sum);
        node.presence = Presence::Both;
        let own = node.amount.minus(&sum);
        let unit = node.unit;
        self.add_fake_kid(id, own, unit);
        Ok(())
    }

    fn add_fake_kid(&mut self, id: NodeId, amount: Amount, unit: Unit) {
        let name = "(fake child)".into();
        let fake = self.find_kid(id, name).unwrap_or_else(|| self.push_kid(id, name, unit));
        let node = &mut self.nodes[fake.0 as usize];
        *node = Node {
            amount,
            unit,
            presence: Presence::Added,
            first_kid: NodeId::NONE,
            last_kid: NodeId::NONE,
            kids: 0,
            absorbed: NodeId::NONE,
            merged: 0,
            description: Span::default(),
            ..node.clone()
        };
    }

    /// What the allocator has handed out and no report names.
    fn add_heap_unclassified(&mut self, process: usize) {
        let (Some(explicit), Some(allocated)) =
            (self.tree(process, "explicit"), self.flat(process, "heap-allocated"))
        else {
            return;
        };
        let name = "heap-unclassified".into();
        if self.find_kid(explicit, name).is_some() {
            return;
        }
        let amount = self.node(allocated).amount.minus(&self.processes[process].heap_total);
        let described = "What the allocator has handed out beyond what the HEAP reports of this tree name; the \
                         allocator's rounding of unreported blocks is in it.";
        let description = self.descriptions.keep(described);
        let added = self.push_kid(explicit, name, Unit::Bytes);
        self.nodes[added.0 as usize].description = description;
        self.nodes[added.0 as usize].amount = amount.clone();
        self.nodes[explicit.0 as usize].amount.add(&amount);
    }

    /// A tree of a process, by its name.
    pub(crate) fn tree(&self, process: usize, name: &str) -> Option<NodeId> {
        self.find_kid(NodeId::root_parent(process, false), name.into())
    }

    /// A flat measurement of a process, by its name.
    fn flat(&self, process: usize, name: &str) -> Option<NodeId> {
        self.find_kid(NodeId::root_parent(process, true), name.into())
    }

    /// All nodes that are shown must have the unit of their root, and a known one.
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

impl Forest {
    /// The path of a node, with the process, for a message.
    fn place(&self, node: NodeId) -> String {
        format!("`{}` of {}", self.segments(node).join("/"), self.root_and_process(node).1)
    }
}

impl Process {
    /// How much of the machine's memory this process has to itself, roughly; what is shared is counted with the main one.
    pub(crate) fn resident_share(&self) -> Amount {
        let share = if self.is_main() || !self.resident_unique.is_truthy() {
            &self.resident
        } else {
            &self.resident_unique
        };
        if share.is_truthy() { share.clone() } else { Amount::Number(0.0) }
    }
}
