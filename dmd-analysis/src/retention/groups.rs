//! Groups of blocks by what they retain together: by type, site, crate, reporter or field.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{NONE, Retention};
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

impl Retention<'_> {
    /// Returns the `top` groups that retain most, largest first, and the number of all groups.
    ///
    /// Groups overlap: blocks that two types hold through each other are retained by both.
    #[must_use]
    pub fn groups(&self, axis: &Axis, top: usize) -> (Vec<RetainedGroup>, usize) {
        let (mut groups, of) = self.group(axis);
        let count = groups.len();
        // The retained size of a group is at least the sum of the retained sizes of its blocks. The
        // exact size takes a walk through the graph, so only the largest candidates are computed.
        let least = self.each_alone(&of, count);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| (Reverse(least[at]), groups[at].name.clone()));
        order.truncate(top.saturating_mul(2));
        let mut shown: Vec<RetainedGroup> = Vec::new();
        for at in order {
            let number = u32::try_from(at).unwrap_or(NONE);
            groups[at].retained = self.without(|block| of[block] == number);
            shown.push(groups[at].clone());
        }
        shown.sort_by(|a, b| b.retained.cmp(&a.retained).then_with(|| a.name.cmp(&b.name)));
        shown.truncate(top);
        (shown, count)
    }

    /// Returns the bytes of these blocks and of the blocks that are only reachable through them.
    pub(crate) fn without(&self, is_gone: impl Fn(usize) -> bool) -> u64 {
        let mut marked: Vec<bool> = (0..self.dump.blocks.len()).map(is_gone).collect();
        let graph = self.graph();
        marked.resize(graph.len(), false);
        let gone = marked.clone();
        graph.reach(self.root(), &mut marked);
        let kept = marked.iter().zip(&gone).map(|(marked, gone)| *marked && !gone);
        let left = kept.zip(0..).filter(|(kept, _)| *kept).map(|(_, node)| self.size(node));
        self.heap().saturating_sub(left.fold(0, u64::saturating_add))
    }

    /// Returns the groups, and for each block the number of its group.
    fn group(&self, axis: &Axis) -> (Vec<RetainedGroup>, Vec<u32>) {
        let mut groups: Vec<RetainedGroup> = Vec::new();
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let style = Style { root: self.options.root.as_deref(), width: 0 };
        let mut blocks = DumpBlocks::new(self.dump, &self.sites, style);
        let of = self.dump.blocks.iter().map(|block| {
            let name = blocks.group_name(&block, axis);
            let number = *numbers.entry(name).or_insert_with_key(|name| {
                groups.push(RetainedGroup { name: name.clone(), blocks: 0, own: 0, retained: 0 });
                u32::try_from(groups.len() - 1).unwrap_or(NONE)
            });
            let group = &mut groups[number as usize];
            group.blocks = group.blocks.saturating_add(block.num);
            group.own = group.own.saturating_add(block.usable().saturating_mul(block.num));
            number
        });
        let of = of.collect();
        (groups, of)
    }

    /// Returns for each group the sum of the retained sizes of its blocks, without blocks that
    /// another block of the group dominates.
    fn each_alone(&self, of: &[u32], count: usize) -> Vec<u64> {
        let mut sums = vec![0; count];
        // By group: the number of its blocks on the path from the root.
        let mut above = vec![0_u32; count];
        let mut pending = vec![(self.root(), false)];
        while let Some((node, is_done)) = pending.pop() {
            let group = of.get(node as usize).map(|&group| group as usize);
            if is_done {
                group.into_iter().for_each(|group| above[group] -= 1);
                continue;
            }
            if let Some(group) = group {
                if above[group] == 0 {
                    sums[group] = u64::saturating_add(sums[group], self.retained.get(node));
                }
                above[group] += 1;
            }
            pending.push((node, true));
            pending.extend(self.dominators.children(node).map(|child| (child, false)));
        }
        sums
    }
}
