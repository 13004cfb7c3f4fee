//! The graph of a dump, and its roots: statics, loose cycles, and blocks that only something
//! external holds.

mod external;
mod handle_count;

pub use external::ExternalRoot;
pub(crate) use external::direct_holder;
pub use handle_count::HandleCount;

use rustc_hash::FxHashMap;

use super::NONE;
use super::graph::edge_list::{Edge, EdgeList};
use super::graph::nodes::NodeSet;
use super::graph::sources::Sources;
use crate::analysis::frames::{Sites, Style};
use crate::analysis::scan::links::BlockRanges;
use crate::analysis::suggest::readable_static;
use crate::read::{Holder, StaticPlace};
use external::ExternalRoots;
use handle_count::count_handles;

/// The roots of a dump: what holds the blocks that no other block points at.
///
/// In the graph of a dump, the nodes are the blocks in their order, then the statics, the loose
/// cycles, and the root.
#[derive(Debug)]
pub(crate) struct Roots {
    /// The statics, and other memory outside the heap, that point at blocks.
    pub(crate) statics: Vec<StaticRoot>,
    /// The cycles that nothing outside of them points at.
    pub(crate) cycles: Vec<LooseCycle>,
    /// The blocks that nothing in the dump points at, sorted.
    heads: Vec<Head>,
    /// The external roots, each once.
    pub(crate) external: Vec<ExternalRoot>,
}

/// A static, and the blocks that it points at.
#[derive(Debug)]
pub(crate) struct StaticRoot {
    pub(crate) name: RootName,
    targets: Vec<u32>,
}

/// A block that nothing in the dump points at.
#[derive(Debug)]
struct Head {
    block: u32,
    /// The number of its external root.
    external: u32,
}

/// Blocks that reach each other, and at which no other block and no static points.
#[derive(Debug)]
pub(crate) struct LooseCycle {
    pub(crate) blocks: Vec<u32>,
    /// The number of its external root.
    pub(crate) external: u32,
    pub(crate) handles: HandleCount,
}

impl Roots {
    /// Returns the number of a block's external root, or `None` if something in the dump points at
    /// the block.
    pub(crate) fn external_of(&self, block: u32) -> Option<u32> {
        let at = self.heads.binary_search_by_key(&block, |head| head.block).ok()?;
        Some(self.heads[at].external)
    }

    /// Returns the edges to nodes with several sources.
    pub(crate) fn edges_to(&self, several: &NodeSet, ranges: &BlockRanges<'_>) -> EdgeList {
        let mut edges = EdgeList::new();
        let mut add = |from: u32, to: u32| {
            if several.contains(to) && from != to {
                edges.add(Edge { to, from });
            }
        };
        ranges.each_link(|link| add(link.from, link.to));
        let statics = self.statics.iter().map(|root| &root.targets);
        let roots = statics.chain(self.cycles.iter().map(|cycle| &cycle.blocks));
        for (targets, node) in roots.zip(number(ranges.dump().blocks.len())..) {
            targets.iter().for_each(|&block| add(node, block));
        }
        edges
    }
}

/// Finds the roots of a dump, and the sources of all nodes of its graph.
pub(crate) fn find(ranges: &BlockRanges<'_>, sites: &Sites, style: &Style<'_>) -> (Roots, Sources) {
    let dump = ranges.dump();
    let blocks = dump.blocks.len();
    let mut sources = Sources::new(blocks);
    let mut self_links = Vec::new();
    ranges.each_link(|link| {
        if link.from != link.to {
            sources.add(link.from, link.to);
        } else if self_links.last() != Some(&link.from) {
            self_links.push(link.from);
        }
    });
    let statics = statics(ranges);
    for place in &statics {
        let node = sources.add_node();
        place.targets.iter().for_each(|&block| sources.add(node, block));
    }
    let is_cycle = |head: &u32| self_links.binary_search(head).is_ok();
    let (alone, heads): (Vec<u32>, Vec<u32>) = sources.heads().partition(is_cycle);
    let mut cycles: Vec<Vec<u32>> = alone.into_iter().map(|block| vec![block]).collect();
    cycles.append(&mut sources.loose_cycles());
    let first = sources.len();
    for cycle in &cycles {
        let node = sources.add_node();
        cycle.iter().for_each(|&block| sources.add(node, block));
    }
    let root = sources.add_node();
    heads.iter().copied().chain(number(first)..root).for_each(|node| sources.add(root, node));
    let mut external = ExternalRoots::new(dump, style);
    let heads = heads.into_iter().filter(|&head| (head as usize) < blocks);
    let heads = heads.map(|block| Head { block, external: external.of_block(block) }).collect();
    let cycles = cycles.into_iter().map(|blocks| {
        let handles = count_handles(ranges, sites, &blocks);
        LooseCycle { external: external.of_cycle(&blocks), blocks, handles }
    });
    let cycles = cycles.collect();
    (Roots { statics, cycles, heads, external: external.list }, sources)
}

fn number(node: usize) -> u32 {
    u32::try_from(node).unwrap_or(NONE)
}

/// The name of a static, or of other memory outside the heap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RootName {
    pub(crate) name: String,
    pub(crate) is_static: bool,
}

/// Returns the statics of a dump that point at blocks.
fn statics(ranges: &BlockRanges<'_>) -> Vec<StaticRoot> {
    let dump = ranges.dump();
    let Some(ours) = &dump.extension else { return Vec::new() };
    let mut statics: Vec<StaticRoot> = Vec::new();
    let mut numbers: FxHashMap<RootName, usize> = FxHashMap::default();
    let mut add = |place: &StaticPlace, block: u32| {
        let at = *numbers.entry(static_name(place)).or_insert_with_key(|name| {
            statics.push(StaticRoot { name: name.clone(), targets: Vec::new() });
            statics.len() - 1
        });
        statics[at].targets.push(block);
    };
    for word in &ours.statics {
        if let Some(found) = ranges.block_at(word.to) {
            add(&word.place, found.block);
        }
    }
    for (block, index) in dump.blocks.iter().zip(0..) {
        if let Some(Holder::Static(place)) = direct_holder(dump, &block) {
            add(place, index);
        }
    }
    statics
}

pub(crate) fn static_name(place: &StaticPlace) -> RootName {
    let name = match &place.name {
        Some(name) => readable_static(name).to_owned(),
        None => {
            let file = place.module.rsplit('/').next().unwrap_or_default();
            format!("(of no name, in {file} at 0x{:x})", place.offset)
        }
    };
    RootName { name, is_static: place.is_static() }
}
