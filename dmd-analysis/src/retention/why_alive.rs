//! The paths that keep blocks alive: the shortest ones from the root, through named statics, types
//! and fields.

mod paths;
mod target;

pub use target::{Target, TargetNotFound};

use super::Retention;
use super::graph::paths::ShortestPaths;
use super::step::Step;

/// The limits of a search for paths.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PathOptions {
    /// The number of paths to print.
    pub top: usize,
    /// The number of nodes to visit in the search for several paths to one block.
    pub work: usize,
}

impl Default for PathOptions {
    fn default() -> Self {
        Self { top: 5, work: 20_000_000 }
    }
}

/// Blocks, and the paths that keep them alive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WhyAlive {
    /// The indices of the blocks in the dump.
    pub blocks: Vec<usize>,
    /// The bytes of the blocks themselves.
    pub own: u64,
    /// The bytes that would be freed with all of the blocks.
    pub retained: u64,
    /// Of one block: the nearest node that every path to it passes, if there is one.
    pub dominator: Option<Step>,
    /// Of one block, its shortest paths. Of several, the shortest path of each, with alike ones
    /// grouped, most bytes first.
    pub paths: Vec<PathToRoot>,
    /// Of several blocks: the number of those whose paths are not in `paths`.
    pub blocks_by_other_paths: u64,
}

/// A path from the root to a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathToRoot {
    /// The number of blocks with such a path.
    pub blocks: u64,
    /// The bytes of these blocks.
    pub bytes: u64,
    /// The steps from the root to one of these blocks.
    pub steps: Vec<Step>,
}

impl Retention<'_> {
    /// Finds the paths that keep blocks alive.
    ///
    /// # Errors
    ///
    /// If no block matches the target.
    pub fn why_alive(
        &self,
        target: &Target,
        options: &PathOptions,
    ) -> Result<WhyAlive, TargetNotFound> {
        let blocks = self.blocks_of(target).ok_or_else(|| TargetNotFound(target.clone()))?;
        let shortest = ShortestPaths::new(self.graph(), self.root());
        let own = blocks.iter().map(|&block| self.size(block)).fold(0, u64::saturating_add);
        let (retained, dominator, found) = if let [block] = blocks[..] {
            let dominator = self.dominators.parent(block).filter(|&node| node != self.root());
            let dominator = dominator.map(|node| self.step(node));
            (self.retained.get(block), dominator, self.paths_to(block, &shortest, options))
        } else {
            let mut is_target = vec![false; self.dump.blocks.len()];
            blocks.iter().for_each(|&block| is_target[block as usize] = true);
            let retained = self.without(|block| is_target[block]);
            (retained, None, self.paths_to_all(&blocks, &shortest, options))
        };
        Ok(WhyAlive {
            blocks: blocks.iter().map(|&block| block as usize).collect(),
            own,
            retained,
            dominator,
            paths: found.paths,
            blocks_by_other_paths: found.blocks_by_other_paths,
        })
    }
}
