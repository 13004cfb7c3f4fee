//! Loose cycles: cycles that the roots do not reach and that nothing outside of them points at.

use super::Graph;

/// Finds the loose cycles among the nodes that are not `reached`. All other such nodes can be
/// reached from these.
///
/// The first pass starts a walk at every node that no earlier walk visited. It starts at a node of
/// each loose cycle, because no other node leads there. The second pass goes through the starts in
/// reverse: those that no later start reaches are the ones in loose cycles. The cycle is the set of
/// nodes that reach its start.
pub(crate) fn loose_cycles(graph: &Graph, reached: &[bool]) -> Vec<Vec<u32>> {
    let mut visited = reached.to_vec();
    let mut starts = Vec::new();
    for node in (0..).take(graph.len()) {
        if !visited[node as usize] {
            starts.push(node);
            graph.reach(node, &mut visited);
        }
    }
    let mut covered = reached.to_vec();
    // Every node that points at a node of the cycle is in the cycle, so no node is visited twice.
    let mut taken = reached.to_vec();
    let mut cycles = Vec::new();
    for &node in starts.iter().rev() {
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
