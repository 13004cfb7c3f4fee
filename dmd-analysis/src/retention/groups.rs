//! Groups of blocks by what they retain together: by type, site, crate, reporter or field.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::graph::dominators::Visit;
use super::graph::nodes::NodeSet;
use super::{NONE, Node, Retention};
use crate::analysis::DumpBlocks;
use crate::analysis::frames::Style;
use crate::axis::Axis;

/// A group of blocks, and what they retain together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetainedGroup {
    /// The name of the group.
    pub name: String,
    /// The number of blocks.
    pub blocks: u64,
    /// The bytes of the blocks themselves.
    pub own: u64,
    /// The bytes that would be freed with all of them: their own, and those of blocks that are only
    /// reachable through them.
    pub retained: u64,
}

/// The groups of a dump's blocks.
struct Grouped {
    groups: Vec<RetainedGroup>,
    /// By shape of a block: the number of its group.
    by_shape: Vec<u32>,
}

impl Retention<'_> {
    /// Returns the `top` groups that retain most, largest first, and the number of all groups.
    ///
    /// Groups overlap: blocks that two types hold through each other are retained by both.
    #[must_use]
    pub fn groups(&self, axis: &Axis, top: usize) -> (Vec<RetainedGroup>, usize) {
        let Grouped { mut groups, by_shape } = self.group(axis);
        let count = groups.len();
        let of = |block: u32| by_shape[self.dump.blocks.shape_of(block as usize)];
        // The retained size of a group is at least the sum of the retained sizes of its blocks. The
        // exact size takes a walk through the graph, so only the largest candidates are computed.
        let least = self.each_alone(of, count);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| (Reverse(least[at]), groups[at].name.clone()));
        order.truncate(top.saturating_mul(2));
        let mut shown: Vec<RetainedGroup> = Vec::new();
        for at in order {
            let number = u32::try_from(at).unwrap_or(NONE);
            groups[at].retained = self.without(|block| of(block) == number);
            shown.push(groups[at].clone());
        }
        shown.sort_by(|a, b| b.retained.cmp(&a.retained).then_with(|| a.name.cmp(&b.name)));
        shown.truncate(top);
        (shown, count)
    }

    /// Returns the bytes of these blocks and of the blocks that are only reachable through them.
    pub(crate) fn without(&self, is_gone: impl Fn(u32) -> bool) -> u64 {
        let edges = self.edges();
        let mut marked = NodeSet::new(edges.len());
        let mut gone = 0_u64;
        for node in self.blocks().filter(|&node| is_gone(node)) {
            marked.insert(node);
            gone = gone.saturating_add(self.size(node));
        }
        edges.reach(self.root(), &mut marked);
        let lost = self.blocks().filter(|&node| !marked.contains(node));
        lost.map(|node| self.size(node)).fold(gone, u64::saturating_add)
    }

    fn group(&self, axis: &Axis) -> Grouped {
        let mut groups: Vec<RetainedGroup> = Vec::new();
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let style = Style { root: self.options.root.as_deref(), width: 0 };
        let mut blocks = DumpBlocks::new(self.dump, &self.sites, style);
        let by_shape = self.dump.blocks.added_up().map(|alike| {
            let name = blocks.group_name(&alike, axis);
            let number = *numbers.entry(name).or_insert_with_key(|name| {
                groups.push(RetainedGroup { name: name.clone(), blocks: 0, own: 0, retained: 0 });
                u32::try_from(groups.len() - 1).unwrap_or(NONE)
            });
            let group = &mut groups[number as usize];
            group.blocks = group.blocks.saturating_add(alike.num);
            group.own = group.own.saturating_add(alike.usable().saturating_mul(alike.num));
            number
        });
        let by_shape = by_shape.collect();
        Grouped { groups, by_shape }
    }

    /// Returns for each group the sum of the retained sizes of its blocks, without blocks that
    /// another block of the group dominates. `of` returns the number of a block's group.
    fn each_alone(&self, of: impl Fn(u32) -> u32, count: usize) -> Vec<u64> {
        let mut sums = vec![0; count];
        // By group: the number of its blocks on the path from the root.
        let mut above = vec![0_u32; count];
        let is_block = |node: u32| matches!(self.node(node), Node::Block(_));
        let group = |node: u32| is_block(node).then(|| of(node) as usize);
        for visit in self.dominators.walk(self.root()) {
            match visit {
                Visit::Enter(node) => {
                    let Some(group) = group(node) else { continue };
                    if above[group] == 0 {
                        sums[group] = u64::saturating_add(sums[group], self.retained.get(node));
                    }
                    above[group] += 1;
                }
                Visit::Leave(node) => group(node).into_iter().for_each(|group| above[group] -= 1),
            }
        }
        sums
    }
}
