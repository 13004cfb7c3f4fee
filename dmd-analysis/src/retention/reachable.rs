//! Finds the blocks of a scan that known roots reach.

mod left;

pub use left::{Left, left};

use super::graph::Builder;
use super::roots::direct_holder;
use crate::analysis::ClampError;
use crate::analysis::scan::links::BlockRanges;
use crate::read::Dump;

/// Returns by block of a scan whether a root reaches it: a static, a stack, a reporter, or a field
/// that its type skips.
///
/// A scan does not contain registers and the stacks of threads that ran, so what only these hold
/// cannot be told from leaked blocks, and counts as unreachable.
///
/// # Errors
///
/// If the dump is not a scan, or if it is damaged.
pub fn reachable_blocks(dump: &Dump) -> Result<Vec<bool>, ClampError> {
    let ranges = BlockRanges::new(dump)?;
    let mut builder = Builder::default();
    ranges.each_link(|link| builder.add(link.from, link.to));
    ranges.check_words()?;
    let graph = builder.finish(dump.blocks.len());
    let mut reached = vec![false; dump.blocks.len()];
    let statics = dump.extension.iter().flat_map(|ours| &ours.statics);
    for word in statics {
        if let Some(found) = ranges.block_at(word.to) {
            graph.reach(found.block, &mut reached);
        }
    }
    for (block, index) in dump.blocks.iter().zip(0..) {
        let is_reported = dump.reports(&block).is_some_and(|reports| !reports.is_empty());
        if is_reported || direct_holder(dump, &block).is_some() {
            graph.reach(index, &mut reached);
        }
    }
    Ok(reached)
}
