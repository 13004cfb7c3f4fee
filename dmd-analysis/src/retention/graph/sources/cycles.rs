//! Loose cycles, by the sources of nodes.

use crate::retention::NONE;
use crate::retention::graph::Graph;
use crate::retention::graph::cycles::loose_cycles;
use crate::retention::graph::nodes::NodeSet;

use super::{SEVERAL, Sources};

/// The starts of the paths of only sources that lead to each node.
struct PathStarts {
    /// By node: the index in `several` of the node at which its path starts, or `several.len()` if
    /// it starts at a head or is a ring.
    of: Vec<u32>,
    /// The nodes with several sources.
    several: Vec<u32>,
    /// The cycles of nodes with one source each.
    rings: Vec<Vec<u32>>,
}

/// The number of a node on the present path.
const ON_PATH: u32 = SEVERAL;

impl Sources {
    /// Finds the loose cycles: cycles of two or more nodes at which no other node points. They are
    /// sorted, and so are the nodes of each.
    pub(crate) fn loose_cycles(&self) -> Vec<Vec<u32>> {
        let PathStarts { of, several, rings: mut cycles } = self.path_starts();
        // The last node stands for heads and rings. Only cycles lead to nodes that it does not
        // reach.
        let outside = u32::try_from(several.len()).unwrap_or(NONE);
        let ends = self.edges.iter().map(|edge| (of[edge.from as usize], of[edge.to as usize]));
        let graph = Graph::of_edges(several.len() + 1, ends.filter(|(from, to)| from != to));
        let mut reached = vec![false; graph.len()];
        graph.reach(outside, &mut reached);
        if reached.contains(&false) {
            let contracted = loose_cycles(&graph, &reached);
            cycles.append(&mut self.with_paths(&contracted, &of, &several));
        }
        cycles.iter_mut().for_each(|cycle| cycle.sort_unstable());
        cycles.sort_unstable();
        cycles
    }

    fn path_starts(&self) -> PathStarts {
        let nodes = || (0..).zip(&self.only);
        let several = nodes().filter(|(_, only)| **only == SEVERAL).map(|(node, _)| node);
        let several: Vec<u32> = several.collect();
        let outside = u32::try_from(several.len()).unwrap_or(NONE);
        let mut of = vec![NONE; self.len()];
        several.iter().zip(0..).for_each(|(&node, number)| of[node as usize] = number);
        let mut rings = Vec::new();
        for (node, _) in nodes() {
            let mut at = node;
            while let (NONE, Some(source)) = (of[at as usize], self.only(at)) {
                of[at as usize] = ON_PATH;
                at = source;
            }
            let start = match of[at as usize] {
                ON_PATH => {
                    rings.push(self.ring(at));
                    outside
                }
                NONE => {
                    of[at as usize] = outside;
                    outside
                }
                start => start,
            };
            at = node;
            while of[at as usize] == ON_PATH {
                of[at as usize] = start;
                at = self.only[at as usize];
            }
        }
        PathStarts { of, several, rings }
    }

    /// Returns the nodes of a cycle in which each has one source.
    fn ring(&self, start: u32) -> Vec<u32> {
        let before = |node: &u32| self.only(*node).filter(|&source| source != start);
        std::iter::successors(Some(start), before).collect()
    }

    /// Returns cycles of nodes with several sources, together with the nodes between them.
    fn with_paths(
        &self,
        contracted: &[Vec<u32>],
        starts: &[u32],
        several: &[u32],
    ) -> Vec<Vec<u32>> {
        let mut cycle_of = vec![NONE; several.len() + 1];
        for (cycle, number) in contracted.iter().zip(0..) {
            cycle.iter().for_each(|&node| cycle_of[node as usize] = number);
        }
        let node = |&number: &u32| several[number as usize];
        let mut cycles: Vec<Vec<u32>> =
            contracted.iter().map(|cycle| cycle.iter().map(node).collect()).collect();
        let mut taken = NodeSet::new(self.len());
        for edge in self.edges.iter() {
            let [from, to] =
                [edge.from, edge.to].map(|node| cycle_of[starts[node as usize] as usize]);
            if from != to || to == NONE {
                continue;
            }
            let mut at = edge.from;
            while let Some(source) = self.only(at)
                && taken.insert(at)
            {
                cycles[to as usize].push(at);
                at = source;
            }
        }
        cycles
    }
}
