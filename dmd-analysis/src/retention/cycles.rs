//! Cycles that nothing outside points at: what is left of a graph when all that its roots reach is gone.

use super::graph::Graph;

/// The cycles among the nodes that are not `reached` which no other node points at: each is all nodes that reach each other.
/// What is left can be reached from these.
///
/// A walk that begins at every node it has not met yet begins at one node of each such cycle, which no other node leads to.
/// Of the beginnings, from the last to the first, those that no later one leads to are theirs.
pub(crate) fn loose(graph: &Graph, reached: &[bool]) -> Vec<Vec<u32>> {
    let mut met = reached.to_vec();
    let mut beginnings = Vec::new();
    for node in (0..).take(graph.len()) {
        if !met[node as usize] {
            beginnings.push(node);
            graph.reach(node, &mut met);
        }
    }
    let mut covered = reached.to_vec();
    // What points at a node of the cycle is of the cycle, so nothing is looked at twice.
    let mut taken = reached.to_vec();
    let mut cycles = Vec::new();
    for &node in beginnings.iter().rev() {
        if !covered[node as usize] {
            graph.reach(node, &mut covered);
            let mut cycle = graph.reach_back(node, &mut taken);
            cycle.sort_unstable();
            cycles.push(cycle);
        }
    }
    cycles.sort_unstable();
    cycles
}
