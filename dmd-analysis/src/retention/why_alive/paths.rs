//! The shortest paths from the root to blocks, with alike paths grouped.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{PathOptions, PathToRoot};
use crate::retention::graph::nodes::NodeSet;
use crate::retention::graph::paths::ShortestPaths;
use crate::retention::kinds::{Key, Keys};
use crate::retention::{NONE, Retention};

/// The paths to print, and the number of blocks that have other paths.
pub(super) struct FoundPaths {
    pub(super) paths: Vec<PathToRoot>,
    pub(super) blocks_by_other_paths: u64,
}

/// The blocks with alike shortest paths.
struct Alike {
    blocks: u64,
    bytes: u64,
    /// The first of the blocks.
    example: u32,
}

impl Alike {
    fn new(example: u32) -> Self {
        Self { blocks: 0, bytes: 0, example }
    }

    fn add(&mut self, block: u32, retention: &Retention<'_>) {
        self.blocks += retention.count(block);
        self.bytes = self.bytes.saturating_add(retention.size(block));
        self.example = self.example.min(block);
    }
}

impl Retention<'_> {
    /// Finds the shortest paths to one block. Paths count once if they only differ in which of
    /// alike blocks they pass.
    pub(super) fn paths_to(&self, block: u32, options: &PathOptions) -> Vec<PathToRoot> {
        let shortest = ShortestPaths::new(self.edges(), self.root(), (), |(), _, _| ());
        let keys = Keys::new(self);
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        shortest.paths(block, options.work, |path| {
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
        found.into_iter().map(path).collect()
    }

    /// Finds the shortest path to each of several blocks, with alike paths grouped.
    pub(super) fn paths_to_all(&self, blocks: &NodeSet, options: &PathOptions) -> FoundPaths {
        let keys = Keys::new(self);
        // Paths that pass alike nodes have the same number, however many of them follow each other.
        let mut numbers: FxHashMap<(u32, Key), u32> = FxHashMap::default();
        let mut groups: FxHashMap<u32, Alike> = FxHashMap::default();
        let shortest = ShortestPaths::new(self.edges(), self.root(), 0, |path, before, node| {
            let is_first = before == self.root();
            let key = if is_first { keys.of_root(self, node) } else { keys.of(self, node) };
            let path = if !is_first && keys.of(self, before) == key {
                path
            } else {
                let next = u32::try_from(numbers.len() + 1).unwrap_or(NONE);
                *numbers.entry((path, key)).or_insert(next)
            };
            if blocks.contains(node) {
                groups.entry(path).or_insert_with(|| Alike::new(node)).add(node, self);
            }
            path
        });
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
}
