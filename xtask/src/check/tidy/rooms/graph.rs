//! A directed graph of imports: components, cycles, and a drawing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The place of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) file: String,
    pub(crate) line: usize,
}

/// The imports between rooms or files, each with the first place that makes it.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    edges: BTreeMap<String, BTreeMap<String, Site>>,
}

impl Graph {
    pub(crate) fn add_node(&mut self, name: String) {
        self.edges.entry(name).or_default();
    }

    pub(crate) fn add_edge(&mut self, from: String, to: String, site: Site) {
        if from != to {
            self.add_node(to.clone());
            self.edges.entry(from).or_default().entry(to).or_insert(site);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    fn imports(&self, from: &str) -> impl Iterator<Item = &str> {
        self.edges.get(from).into_iter().flatten().map(|(to, _)| to.as_str())
    }

    /// Returns all nodes that imports lead to, directly or not.
    fn reachable<'graph>(&'graph self, from: &'graph str) -> BTreeSet<&'graph str> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            open.extend(self.imports(node).filter(|next| found.insert(*next)));
        }
        found
    }

    /// Returns the strongly connected components.
    pub(crate) fn components(&self) -> Vec<BTreeSet<&str>> {
        let reachable: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|node| (node.as_str(), self.reachable(node))).collect();
        let mut components: Vec<BTreeSet<&str>> = Vec::new();
        for (node, targets) in &reachable {
            if !components.iter().any(|component| component.contains(node)) {
                let returns = |target: &&&str| reachable[**target].contains(node);
                let mut component: BTreeSet<&str> =
                    targets.iter().filter(returns).copied().collect();
                component.insert(node);
                components.push(component);
            }
        }
        components
    }

    /// Returns a shortest cycle through the first node of a component, an import a line.
    pub(crate) fn cycle(&self, component: &BTreeSet<&str>) -> Vec<String> {
        let Some(start) = component.first() else { return Vec::new() };
        let mut paths = vec![vec![*start]];
        let mut seen = BTreeSet::new();
        while !paths.is_empty() {
            let mut longer = Vec::new();
            for path in paths {
                for next in self.imports(path[path.len() - 1]) {
                    let path = [&path[..], &[next]].concat();
                    if next == *start {
                        return path.windows(2).map(|pair| self.line(pair)).collect();
                    }
                    if seen.insert(next) {
                        longer.push(path);
                    }
                }
            }
            paths = longer;
        }
        Vec::new()
    }

    fn line(&self, pair: &[&str]) -> String {
        let (from, to) = (pair[0], pair[1]);
        let Site { file, line } = &self.edges[from][to];
        format!("  {file}:{line}: {from} imports {to}")
    }

    /// Returns the nodes, importers first. Nodes of a cycle follow in the order of names.
    fn order(&self) -> Vec<&str> {
        let mut left: BTreeSet<&str> = self.edges.keys().map(String::as_str).collect();
        let mut order = Vec::new();
        while let Some(first) = left.first().copied() {
            let is_imported =
                |node: &str| left.iter().any(|from| self.edges[*from].contains_key(node));
            let next = left.iter().copied().find(|node| !is_imported(node)).unwrap_or(first);
            left.remove(next);
            order.push(next);
        }
        order
    }
}

impl fmt::Display for Graph {
    /// Draws one node a line: `  hook → table, stack`. A node without imports has a line only if
    /// no other line names it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in self.order() {
            let imports: Vec<&str> = self.imports(node).collect();
            let is_imported = self.edges.values().any(|imports| imports.contains_key(node));
            match (imports.is_empty(), is_imported) {
                (false, _) => writeln!(out, "  {node} → {}", imports.join(", "))?,
                (true, false) => writeln!(out, "  {node}")?,
                (true, true) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        for (line, (from, to)) in (1..).zip(edges) {
            let site = Site { file: format!("{from}.rs"), line };
            graph.add_edge((*from).to_owned(), (*to).to_owned(), site);
        }
        graph
    }

    #[test]
    fn components_and_cycles_are_found() {
        let graph =
            graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("c", "d"), ("e", "a")]);
        let components: Vec<Vec<&str>> =
            graph.components().into_iter().map(|nodes| nodes.into_iter().collect()).collect();
        assert_eq!(components, [vec!["a", "b", "c"], vec!["d"], vec!["e"]]);
        let cycle = graph.cycle(&BTreeSet::from(["a", "b", "c"]));
        assert_eq!(cycle, ["  a.rs:1: a imports b", "  b.rs:4: b imports a"]);
    }

    #[test]
    fn importers_are_drawn_first() {
        let mut graph = graph(&[("z", "a"), ("z", "m"), ("m", "a")]);
        graph.add_node("b".to_owned());
        assert_eq!(graph.to_string(), "  b\n  z → a, m\n  m → a\n");
    }
}
