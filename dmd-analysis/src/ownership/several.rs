//! The roots of blocks that several roots hold: which they are.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::retention::NONE;
use crate::retention::graph::dominators::Visit;
use crate::retention::graph::nodes::{NodeSet, Numbering};

use super::holders::Holders;
use super::roots::{Roots, Source};

/// The most roots that are named.
const NAMED: usize = 3;

/// The first roots that lead to a block, in their order: one more than is named. [`NONE`] fills the
/// rest.
type First = [u32; NAMED + 1];

/// The roots of each block whose holder is none alone.
pub(super) struct Several {
    first: FxHashMap<u32, First>,
}

impl Several {
    /// Finds the roots of all such blocks.
    pub(super) fn new(holders: &Holders, roots: &Roots<'_>) -> Self {
        let mut links = links(holders, roots);
        links.sort_unstable();
        links.dedup();
        let mut first: FxHashMap<u32, First> = FxHashMap::default();
        let mut pending: VecDeque<u32> = (roots.first..roots.external).collect();
        for &source in &pending {
            first.insert(source, with(source, [NONE; NAMED + 1]));
        }
        // A set only gets earlier roots, so this ends.
        while let Some(node) = pending.pop_front() {
            let from = first[&node];
            let begin = links.partition_point(|(holder, _)| *holder < node);
            for &(_, to) in links[begin..].iter().take_while(|(holder, _)| *holder == node) {
                let before = first.entry(to).or_insert([NONE; NAMED + 1]);
                let after = from.iter().fold(*before, |all, &root| with(root, all));
                if after != *before {
                    *before = after;
                    pending.push_back(to);
                }
            }
        }
        Self { first }
    }

    /// Returns the names of the roots of a block: `A, B and C`.
    pub(super) fn names(&self, block: u32, roots: &Roots<'_>) -> String {
        let first = self.first.get(&block).copied().unwrap_or([NONE; NAMED + 1]);
        let known = first.iter().take_while(|root| **root != NONE);
        let known = known.filter_map(|root| roots.sources.get((root - roots.first) as usize));
        let mut names: Vec<String> = known.map(|source| name(source, roots)).collect();
        if let Some(name) = names.get_mut(NAMED) {
            *name = "others".to_owned();
        }
        match names.split_last() {
            None => "blocks that no root leads to".to_owned(),
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        }
    }
}

/// Returns the name of a root: of a part, with all that it is a part of, as `carts: Vec<Cart> in
/// shop::main of thread 7`.
fn name(source: &Source<'_>, roots: &Roots<'_>) -> String {
    let whole = |part: &Source<'_>| roots.sources.get(part.parent? as usize);
    let before = if source.is_static { "static " } else { "" };
    let mut name = format!("{before}{}", source.name);
    let mut next = whole(source);
    while let Some(part) = next {
        next = whole(part);
        let word = if next.is_some() { "in" } else { "of" };
        name = format!("{name} {word} {}", part.name);
    }
    name
}

/// Returns the pointers to the blocks that several hold: from the root that the holder hangs on, or
/// from another such block. A root that is a part of another counts by itself.
fn links(holders: &Holders, roots: &Roots<'_>) -> Vec<(u32, u32)> {
    let (dominators, root) = (&holders.dominators, holders.root);
    let mut several = NodeSet::new(roots.nodes());
    for node in dominators.children(root).filter(|node| *node < roots.first) {
        several.insert(node);
    }
    let shared = || holders.shared().iter().filter(|shared| several.contains(shared.to));
    let mut needed = NodeSet::new(roots.nodes());
    shared().for_each(|shared| _ = needed.insert(shared.from));
    let needed = Numbering::new(needed);
    if needed.len() == 0 {
        return Vec::new();
    }
    // By needed node: the root, or the block that several hold. [`NONE`] if nothing leads to it.
    let mut tops = vec![NONE; needed.len()];
    let mut above: Vec<u32> = Vec::new();
    for visit in dominators.walk(root) {
        match visit {
            Visit::Enter(node) => {
                if node >= roots.first || several.contains(node) {
                    above.push(node);
                }
                if let Some(number) = needed.get(node) {
                    tops[number as usize] = above.last().copied().unwrap_or(NONE);
                }
            }
            Visit::Leave(node) => _ = above.pop_if(|top| *top == node),
        }
    }
    let links = shared().map(|shared| (tops[needed.number(shared.from) as usize], shared.to));
    links.filter(|(from, to)| from != to && *from != NONE && *from != root).collect()
}

/// Adds a root to the first ones.
fn with(root: u32, mut first: First) -> First {
    if root == NONE || first.contains(&root) {
        return first;
    }
    let at = first.partition_point(|known| *known < root);
    if at < first.len() {
        first[at..].rotate_right(1);
        first[at] = root;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_roots_are_kept_in_order() {
        let all = [7, 3, 9, 3, 5, 1].iter().fold([NONE; 4], |all, &root| with(root, all));
        assert_eq!(all, [1, 3, 5, 7]);
        assert_eq!(with(NONE, all), all);
    }
}
