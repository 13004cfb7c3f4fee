//! The paths that keep blocks alive: the shortest ones from the root, through named statics, types
//! and fields.

mod paths;
mod target;

pub use target::{Target, TargetNotFound};

use super::Retention;
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
    /// The number of the blocks.
    pub blocks: usize,
    /// Of one block: its index in the dump.
    pub block: Option<usize>,
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
        let blocks = self.nodes_of(target);
        let count = blocks.iter().count();
        let Some(first) = blocks.iter().next() else { return Err(TargetNotFound(target.clone())) };
        let own = blocks.iter().map(|block| self.size(block)).fold(0, u64::saturating_add);
        if count > 1 {
            let found = self.paths_to_all(&blocks, options);
            return Ok(WhyAlive {
                blocks: count,
                block: None,
                own,
                retained: self.without(|block| blocks.contains(block)),
                dominator: None,
                paths: found.paths,
                blocks_by_other_paths: found.blocks_by_other_paths,
            });
        }
        let dominator = self.dominators.parent(first).filter(|&node| node != self.root());
        Ok(WhyAlive {
            blocks: count,
            block: Some(first as usize),
            own,
            retained: self.retained.get(first),
            dominator: dominator.map(|node| self.step(node)),
            paths: self.paths_to(first, options),
            blocks_by_other_paths: 0,
        })
    }
}
