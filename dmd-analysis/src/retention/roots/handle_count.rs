//! Handles of a cycle: whether the counts of its `Rc`s and `Arc`s show that it is leaked.

use rustc_hash::FxHashMap;

use crate::analysis::frames::{BlockType, Sites};
use crate::analysis::scan::links::BlockRanges;
use crate::read::Dump;

/// The comparison of the counts in a cycle's `Rc`s and `Arc`s with the handles that are in the
/// cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HandleCount {
    /// Every counted handle is in the cycle itself, which is therefore leaked.
    Leaked,
    /// This many counted handles are in no block: something outside the heap holds the cycle, or a
    /// handle was forgotten.
    Outside(u64),
    /// The cycle has no counts, or they do not agree with its handles.
    Unknown,
}

/// Compares the counts in the shared blocks of a cycle with the handles that are in it.
///
/// A shared block begins with its count of strong handles, followed by the count of weak ones,
/// which is one higher.
pub(super) fn count_handles(
    dump: &Dump,
    ranges: &BlockRanges,
    sites: &Sites,
    cycle: &[u32],
) -> HandleCount {
    let is_shared = |block: u32| {
        let site = sites.get(dump.blocks[block as usize].alloc);
        matches!(&site.block_type, BlockType::Known(name)
            if name.starts_with("Rc<") || name.starts_with("Arc<"))
    };
    let mut handles: FxHashMap<u32, u64> = FxHashMap::default();
    handles.extend(cycle.iter().filter(|&&block| is_shared(block)).map(|&block| (block, 0)));
    for &block in cycle.iter().take(if handles.is_empty() { 0 } else { cycle.len() }) {
        ranges.each_link_of(dump, block, |link| {
            if let Some(handles) = handles.get_mut(&link.to) {
                *handles += 1;
            }
        });
    }
    let mut outside = 0;
    let mut is_known = !handles.is_empty();
    for (block, found) in handles {
        let counted = match ranges.words_of(dump, block) {
            [strong, weak, ..] if *strong > 0 && *weak > 0 => strong.checked_add(weak - 1),
            _ => None,
        };
        // More words than counted handles: some of the words are not handles.
        match counted.and_then(|counted| counted.checked_sub(found)) {
            Some(more) => outside += more,
            None => is_known = false,
        }
    }
    match outside {
        _ if !is_known => HandleCount::Unknown,
        0 => HandleCount::Leaked,
        more => HandleCount::Outside(more),
    }
}
