//! The variables of functions that keep counted blocks.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::analysis::frames::{BlockType, Sites};
use crate::analysis::scan::links::BlockRanges;
use crate::analysis::without_library;
use crate::read::TraceId;

/// A variable with its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) block: u32,
}

/// Finds the variables whose line allocated a single unreported `Arc`. Those at whose block no
/// other block points come first.
pub(super) fn find(
    ranges: &BlockRanges<'_>,
    sites: &Sites,
    name_of: &dyn Fn(&str, u32) -> Option<String>,
) -> Vec<Variable> {
    let dump = ranges.dump();
    let mut names: HashMap<TraceId, Option<String>> = HashMap::new();
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (block, number) in dump.blocks.iter().zip(0..) {
        let Some(trace) = block.kind.alloc.filter(|_| dump.reports(&block).is_none()) else {
            continue;
        };
        let BlockType::Known(name) = &sites.get(Some(trace)).block_type else { continue };
        if !name.starts_with("Arc<") {
            continue;
        }
        let name = names.entry(trace).or_insert_with(|| {
            let frames = without_library(dump, dump.trace(trace));
            let own = frames.first()?;
            name_of(own.file?, own.line?)
        });
        if let Some(name) = name {
            found.entry(name.clone()).or_default().push(number);
        }
    }
    // Several blocks of one line are of several calls, and the variable keeps the last one alone.
    let single = found.into_iter().filter(|(_, blocks)| blocks.len() == 1);
    let mut variables: Vec<Variable> =
        single.map(|(name, blocks)| Variable { name, block: blocks[0] }).collect();
    let mut held: HashSet<u32> = HashSet::new();
    ranges.each_link(|link| {
        if link.from != link.to && variables.iter().any(|variable| variable.block == link.to) {
            held.insert(link.to);
        }
    });
    variables.sort_by_key(|variable| held.contains(&variable.block));
    variables
}
