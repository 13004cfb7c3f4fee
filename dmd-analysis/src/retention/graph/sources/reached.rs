//! The nodes that a root reaches, by the sources of nodes.

use crate::retention::graph::nodes::{NodeSet, Numbering};

use super::Sources;

impl Sources {
    /// Finds the nodes that can be reached from the root, which has no source.
    pub(crate) fn reached(&self, root: u32) -> NodeSet {
        let contracted = Numbering::new(self.contracted(root));
        let nodes = contracted.nodes();
        let mut marked = vec![false; nodes.len()];
        self.contracted_graph(&contracted, &nodes).reach(contracted.number(root), &mut marked);
        let (mut reached, mut passed) = (NodeSet::new(self.len()), NodeSet::new(self.len()));
        for (&node, _) in nodes.iter().zip(&marked).filter(|(_, is_marked)| **is_marked) {
            reached.insert(node);
        }
        nodes.iter().for_each(|&node| _ = passed.insert(node));
        for node in (0..).take(self.len()) {
            // Back to a node that is known. A ring leads back to a node of the same path, which is
            // not reached, and so does a path without a source.
            let mut at = node;
            while passed.insert(at) {
                let Some(source) = self.only(at) else { break };
                at = source;
            }
            if reached.contains(at) {
                let end = at;
                at = node;
                while at != end {
                    reached.insert(at);
                    let Some(source) = self.only(at) else { break };
                    at = source;
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_and_what_they_lead_to_are_not_reached() {
        // 0 is the root. 1, 2 and 3 form a path; 4 and 5 a ring that leads to 6, and to 7 as well;
        // 8 and 9 a ring with an edge from 3; 10 has no source, and leads to 11.
        let edges = [
            (0, 1),
            (1, 2),
            (2, 3),
            (4, 5),
            (5, 4),
            (5, 6),
            (6, 7),
            (3, 7),
            (8, 9),
            (9, 8),
            (3, 8),
            (10, 11),
        ];
        let mut sources = Sources::new(12);
        edges.into_iter().for_each(|(from, to)| sources.add(from, to));
        let reached: Vec<u32> = sources.reached(0).iter().collect();
        assert_eq!(reached, [0, 1, 2, 3, 7, 8, 9]);
    }
}
