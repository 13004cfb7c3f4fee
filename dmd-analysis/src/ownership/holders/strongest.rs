//! The strongest pointers to each block.

use std::cmp::Ordering;

use crate::ownership::claims::path_flags::Rank;
use crate::ownership::claims::{Claims, Edge};
use crate::ownership::shape::{LabelId, Strength};
use crate::retention::NONE;
use crate::retention::graph::edge_list;
use crate::retention::graph::narrow::NarrowNumbers;
use crate::retention::graph::nodes::NodeSet;
use crate::retention::graph::sources::{SEVERAL, Sources};

/// The claim that a pointer has on its block, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim(u8);

/// One of several strongest pointers to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::ownership) struct Shared {
    pub(in crate::ownership) to: u32,
    pub(in crate::ownership) from: u32,
    pub(in crate::ownership) label: LabelId,
    claim: Claim,
}

/// The strongest pointers to each block. Most blocks have one.
pub(super) struct Strongest {
    /// By node: what has its only strongest pointer, [`NONE`], or [`SEVERAL`].
    pub(super) only: Vec<u32>,
    /// By block: the claim of these pointers.
    best: Vec<Claim>,
    /// By block: the label of the only pointer.
    pub(super) labels: NarrowNumbers,
    /// The pointers to blocks that have several, with others that were found before stronger ones.
    shared: Vec<Shared>,
    /// The number of pointers at which the others are removed.
    clean_at: usize,
    /// The blocks, each with the node that reached it first, unless this has its only pointer.
    reached_from: Vec<(u32, u32)>,
    /// These blocks.
    noted: NodeSet,
}

/// The smallest number of pointers at which the weaker ones are removed.
const LEAST_CLEAN: usize = if cfg!(test) { 8 } else { 1 << 20 };

/// The number of weak strengths, and one for none.
const WEAK: u8 = Strength::Excluded as u8 - Strength::Shared as u8 + 1;

impl Claim {
    /// Of blocks without a pointer.
    const NONE: Self = Self(u8::MAX);

    /// Returns the claim of a pointer of this strength from a node with this rank. What a root
    /// leads to is not leaked, whatever else holds it. Between owners, the way from the root counts
    /// more than the strength: a stale pointer in a buffer of unknown length may look like an
    /// owner.
    pub(super) const fn of(rank: Rank, strength: Strength) -> Self {
        let strength = strength as u8;
        let (weak, strong) = if strength > Strength::Shared as u8 {
            (strength - Strength::Shared as u8, 0)
        } else {
            (0, strength)
        };
        let is_unrooted = matches!(rank, Rank::Unrooted) as u8;
        // There are four ranks, and two strong strengths.
        Self(((is_unrooted * WEAK + weak) * 4 + rank as u8) * 2 + strong)
    }
}

const _: () = assert!(Claim::of(Rank::Unrooted, Strength::Excluded).0 < Claim::NONE.0);

impl Strongest {
    /// Finds the strongest of all pointers.
    pub(super) fn new(claims: &mut Claims<'_, '_, '_>, blocks: usize) -> Self {
        let mut strongest = Self {
            // What reached a block has its only pointer in most cases.
            only: std::mem::take(&mut claims.reached_from),
            best: vec![Claim::NONE; blocks],
            labels: NarrowNumbers::new(blocks),
            shared: Vec::new(),
            clean_at: LEAST_CLEAN,
            reached_from: Vec::new(),
            noted: NodeSet::new(blocks),
        };
        claims.each_edge(&mut |claims, edge| {
            let claim = Claim::of(claims.rank(edge.from), edge.strength);
            strongest.add(Shared { to: edge.to, from: edge.from, label: edge.label, claim });
        });
        strongest.finish();
        strongest
    }

    fn add(&mut self, new: Shared) {
        let at = new.to as usize;
        let before = self.only[at];
        match new.claim.cmp(&self.best[at]) {
            Ordering::Greater => {}
            Ordering::Less => {
                self.best[at] = new.claim;
                self.labels.set(new.to, new.label.0);
                self.set_only(new.to, new.from);
            }
            Ordering::Equal if before == new.from => {
                let label = self.labels.get(new.to).min(new.label.0);
                self.labels.set(new.to, label);
            }
            Ordering::Equal => {
                if before != SEVERAL {
                    let label = self.label(new.to);
                    self.shared.push(Shared { from: before, label, ..new });
                    self.set_only(new.to, SEVERAL);
                }
                match self.shared.last_mut() {
                    Some(last)
                        if (last.to, last.from, last.claim) == (new.to, new.from, new.claim) =>
                    {
                        last.label = last.label.min(new.label);
                    }
                    _ => self.shared.push(new),
                }
                if self.shared.len() >= self.clean_at {
                    self.clean();
                    self.clean_at = (2 * self.shared.len()).max(LEAST_CLEAN);
                }
            }
        }
    }

    /// Sets what has the only pointer. The first time that it changes, it was the node that reached
    /// the block first.
    fn set_only(&mut self, block: u32, from: u32) {
        let before = std::mem::replace(&mut self.only[block as usize], from);
        if before != from && before < SEVERAL && self.noted.insert(block) {
            self.reached_from.push((block, before));
        }
    }

    /// Removes pointers that are not the strongest, and all but one of those from the same node.
    fn clean(&mut self) {
        let best = &self.best;
        self.shared.retain(|shared| shared.claim == best[shared.to as usize]);
        self.shared.sort_unstable();
        self.shared.dedup_by_key(|shared| (shared.to, shared.from));
    }

    fn finish(&mut self) {
        for block in (0..).take(self.best.len()) {
            // What reached it first had a pointer until its layout was known.
            if self.best[block as usize] == Claim::NONE {
                self.set_only(block, NONE);
            }
        }
        self.clean();
        self.reached_from.sort_unstable();
        self.noted = NodeSet::new(0);
    }

    /// Returns the node that reached a block first.
    pub(super) fn reached_from(&self, block: u32) -> u32 {
        let known = self.reached_from.binary_search_by_key(&block, |(block, _)| *block);
        known.map_or(self.only[block as usize], |at| self.reached_from[at].1)
    }

    /// Visits the nodes that have the strongest pointers to a node.
    pub(super) fn each_source(&self, node: u32, mut visit: impl FnMut(u32)) {
        match self.only[node as usize] {
            NONE => {}
            SEVERAL => shared_with(&self.shared, node).iter().for_each(|other| visit(other.from)),
            only => visit(only),
        }
    }

    /// Adds a pointer to each of these blocks, though it is not the strongest one.
    pub(super) fn add_weaker(&mut self, edges: &[Edge]) {
        let mut new = Vec::new();
        for &Edge { from, to, label, .. } in edges {
            let mut is_known = false;
            self.each_source(to, |source| is_known |= source == from);
            if !is_known {
                let only = std::mem::replace(&mut self.only[to as usize], SEVERAL);
                let claim = self.best[to as usize];
                let first = Shared { to, from: only, label: self.label(to), claim };
                new.extend((only < SEVERAL).then_some(first));
                new.push(Shared { from, label, ..first });
            }
        }
        self.shared.append(&mut new);
        self.shared.sort_unstable();
    }

    fn label(&self, block: u32) -> LabelId {
        LabelId(self.labels.get(block))
    }

    /// Returns the sources of all nodes. [`only`](Self::only) is empty until it is set again.
    pub(super) fn take_sources(&mut self) -> Sources {
        let edges = self.shared.iter().map(|&Shared { to, from, .. }| edge_list::Edge { to, from });
        Sources::of(std::mem::take(&mut self.only), edges)
    }

    /// Returns the labels of the only pointers, and the pointers to blocks that have several,
    /// sorted by the block.
    pub(super) fn into_labels(self) -> (NarrowNumbers, Vec<Shared>) {
        (self.labels, self.shared)
    }
}

/// Returns the pointers to one block, of those that are sorted by the block.
pub(super) fn shared_with(shared: &[Shared], block: u32) -> &[Shared] {
    let first = shared.partition_point(|other| other.to < block);
    let rest = &shared[first..];
    &rest[..rest.partition_point(|other| other.to == block)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::shape::STRENGTHS;

    #[test]
    fn claims_are_in_the_order_of_their_reasons() {
        let ranks = [Rank::Typed, Rank::Words, Rank::LibraryStackWords, Rank::Unrooted];
        let strengths = [
            Strength::Owner,
            Strength::Shared,
            Strength::Raw,
            Strength::Variable,
            Strength::Borrowed,
            Strength::Word,
            Strength::UnlikelyWord,
            Strength::StackWord,
            Strength::LibraryStackWord,
            Strength::Weak,
            Strength::Stale,
            Strength::Excluded,
        ];
        assert_eq!(strengths.len(), STRENGTHS);
        let reasons = |(rank, strength): (Rank, Strength)| {
            let weak = Some(strength).filter(|strength| *strength > Strength::Shared);
            (rank == Rank::Unrooted, weak, rank, strength)
        };
        let all = ranks.iter().flat_map(|&rank| strengths.map(|strength| (rank, strength)));
        let all: Vec<_> = all.collect();
        for &a in &all {
            for &b in &all {
                let claims = Claim::of(a.0, a.1).cmp(&Claim::of(b.0, b.1));
                assert_eq!(claims, reasons(a).cmp(&reasons(b)), "{a:?} {b:?}");
            }
        }
    }
}
