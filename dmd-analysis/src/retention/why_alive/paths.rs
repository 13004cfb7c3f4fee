//! The shortest paths from the root to blocks, with alike paths grouped.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{PathOptions, PathToRoot};
use crate::retention::graph::paths::ShortestPaths;
use crate::retention::kinds::{Key, Keys};
use crate::retention::{NONE, Node, Retention};

/// The paths to print, and the number of blocks that have other paths.
pub(super) struct FoundPaths {
    pub(super) paths: Vec<PathToRoot>,
    pub(super) blocks_by_other_paths: u64,
}

/// The blocks with alike shortest paths.
struct Alike {
    blocks: u64,
    bytes: u64,
    /// One of the blocks.
    example: u32,
}

impl Retention<'_> {
    /// Finds the shortest paths to one block. Paths count once if they only differ in which of
    /// alike blocks they pass.
    pub(super) fn paths_to(
        &self,
        block: u32,
        shortest: &ShortestPaths,
        options: &PathOptions,
    ) -> FoundPaths {
        let keys = Keys::new(self);
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        shortest.paths(self.graph(), block, options.work, |path| {
            let mut passed: Vec<Key> = path.iter().map(|&node| keys.of(self, node)).collect();
            passed.dedup();
            if seen.insert(passed) {
                found.push(path);
            }
            found.len() >= options.top
        });
        if found.is_empty() && options.top > 0 {
            // The search for several paths gives up if the shortest is very long.
            found.push(shortest.path(block));
        }
        let bytes = self.size(block);
        let path = |path: Vec<u32>| PathToRoot { blocks: 1, bytes, steps: self.steps(&path) };
        FoundPaths { paths: found.into_iter().map(path).collect(), blocks_by_other_paths: 0 }
    }

    /// Finds the shortest path to each of several blocks, with alike paths grouped.
    pub(super) fn paths_to_all(
        &self,
        blocks: &[u32],
        shortest: &ShortestPaths,
        options: &PathOptions,
    ) -> FoundPaths {
        let numbers = self.number_paths(shortest);
        let mut groups: FxHashMap<u32, Alike> = FxHashMap::default();
        for &block in blocks {
            let none = Alike { blocks: 0, bytes: 0, example: block };
            let alike = groups.entry(numbers[block as usize]).or_insert(none);
            alike.blocks += self.count(block);
            alike.bytes = alike.bytes.saturating_add(self.size(block));
        }
        let mut groups: Vec<Alike> = groups.into_values().collect();
        groups.sort_unstable_by_key(|alike| (Reverse(alike.bytes), alike.example));
        let blocks_by_other_paths = groups.iter().skip(options.top).map(|alike| alike.blocks).sum();
        let paths = groups.into_iter().take(options.top).map(|alike| PathToRoot {
            blocks: alike.blocks,
            bytes: alike.bytes,
            steps: self.steps(&shortest.path(alike.example)),
        });
        FoundPaths { paths: paths.collect(), blocks_by_other_paths }
    }

    /// Returns for each node the number of its shortest path. Paths that pass alike nodes have the
    /// same number, however many of them follow each other.
    fn number_paths(&self, shortest: &ShortestPaths) -> Vec<u32> {
        let keys = Keys::new(self);
        let mut known: FxHashMap<(u32, Key), u32> = FxHashMap::default();
        let mut numbers = vec![0; self.graph().len()];
        for &node in &shortest.order {
            let Some(before) = shortest.before(node) else { continue };
            let is_first = self.node(before) == Node::Root;
            let key = if is_first { keys.of_root(self, node) } else { keys.of(self, node) };
            let path = numbers[before as usize];
            numbers[node as usize] = if !is_first && keys.of(self, before) == key {
                path
            } else {
                let next = u32::try_from(known.len() + 1).unwrap_or(NONE);
                *known.entry((path, key)).or_insert(next)
            };
        }
        numbers
    }
}
