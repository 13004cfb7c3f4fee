//! What retains most, by type, site, crate, reporter or field: what would be given back if all blocks of a group were.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{Holds, NONE};
use crate::analysis::DumpBlocks;
use crate::analysis::people::Style;
use crate::axis::Axis;

/// Blocks with one answer, and what they retain together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldGroup {
    /// The answer.
    pub name: String,
    /// How many blocks.
    pub blocks: u64,
    /// Their own bytes.
    pub own: u64,
    /// The bytes that would be given back if none of them were there: what every way from the root comes to through one of
    /// them, themselves included.
    pub retained: u64,
}

impl Holds<'_> {
    /// The `top` groups that retain most, largest first, and how many there are in all. Groups overlap: what types hold
    /// through each other is retained by each.
    #[must_use]
    pub fn groups(&self, axis: &Axis, top: usize) -> (Vec<HeldGroup>, usize) {
        let (mut groups, of) = self.group(axis);
        let count = groups.len();
        // Together blocks retain what each does, and what several of them share besides. The exact sum takes a walk through the
        // graph, so it is asked of those alone that are big by the first.
        let least = self.each_alone(&of, count);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| (Reverse(least[at]), groups[at].name.clone()));
        order.truncate(top.saturating_mul(2));
        let mut shown: Vec<HeldGroup> = Vec::new();
        for at in order {
            let number = u32::try_from(at).unwrap_or(NONE);
            groups[at].retained = self.without(|block| of[block] == number);
            shown.push(groups[at].clone());
        }
        shown.sort_by(|a, b| b.retained.cmp(&a.retained).then_with(|| a.name.cmp(&b.name)));
        shown.truncate(top);
        (shown, count)
    }

    /// The bytes of these blocks and of all that is held through them alone.
    pub(crate) fn without(&self, is_gone: impl Fn(usize) -> bool) -> u64 {
        let mut marked: Vec<bool> = (0..self.dump.blocks.len()).map(is_gone).collect();
        marked.resize(self.graph.len(), false);
        let gone = marked.clone();
        self.graph.reach(self.root(), &mut marked);
        let kept = marked.iter().zip(&gone).map(|(marked, gone)| *marked && !gone);
        let left = kept.zip(0..).filter(|(kept, _)| *kept).map(|(_, node)| self.size(node));
        self.heap().saturating_sub(left.fold(0, u64::saturating_add))
    }

    /// The groups, and the number of each block's.
    fn group(&self, axis: &Axis) -> (Vec<HeldGroup>, Vec<u32>) {
        let mut groups: Vec<HeldGroup> = Vec::new();
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let style = Style { root: self.options.root.as_deref(), width: 0 };
        let mut blocks = DumpBlocks::new(self.dump, &self.sites, style);
        let of = self.dump.blocks.iter().map(|block| {
            let name = blocks.group_name(block, axis);
            let number = *numbers.entry(name).or_insert_with_key(|name| {
                groups.push(HeldGroup { name: name.clone(), blocks: 0, own: 0, retained: 0 });
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

    /// By group: the sum of what each of its blocks retains, without those that another of its blocks dominates.
    fn each_alone(&self, of: &[u32], count: usize) -> Vec<u64> {
        let mut sums = vec![0; count];
        // How many blocks of the group are on the way from the root.
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
                    sums[group] = u64::saturating_add(sums[group], self.retained[node as usize]);
                }
                above[group] += 1;
            }
            pending.push((node, true));
            pending.extend(self.dominators.kids(node).iter().map(|&kid| (kid, false)));
        }
        sums
    }
}
