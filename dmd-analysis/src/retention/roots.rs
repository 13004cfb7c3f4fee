//! The graph of a dump, and its roots: statics, loose cycles, and blocks that only something
//! external holds.

mod external;
mod handle_count;

pub use external::ExternalRoot;
pub(crate) use external::direct_holder;
pub use handle_count::HandleCount;

use rustc_hash::FxHashMap;

use super::NONE;
use super::graph::cycles::loose_cycles;
use super::graph::{Builder, Graph};
use crate::analysis::frames::{Sites, Style};
use crate::analysis::scan::links::BlockRanges;
use crate::analysis::suggest::readable_static;
use crate::read::{Holder, StaticPlace};
use external::ExternalRoots;
use handle_count::count_handles;

/// The roots of a dump: what holds the blocks that no other block points at.
#[derive(Debug)]
pub(crate) struct Roots {
    /// The statics, and other memory outside the heap, that point at blocks.
    pub(crate) statics: Vec<RootName>,
    /// The cycles that nothing outside of them points at.
    pub(crate) cycles: Vec<LooseCycle>,
    /// The blocks that nothing in the dump points at, sorted.
    heads: Vec<Head>,
    /// The external roots, each once.
    pub(crate) external: Vec<ExternalRoot>,
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

/// The graph of a dump with its roots.
#[derive(Debug)]
pub(crate) struct RootedGraph {
    pub(crate) graph: Graph,
    pub(crate) roots: Roots,
}

impl Roots {
    /// Returns the number of a block's external root, or `None` if something in the dump points at
    /// the block.
    pub(crate) fn external_of(&self, block: u32) -> Option<u32> {
        let at = self.heads.binary_search_by_key(&block, |head| head.block).ok()?;
        Some(self.heads[at].external)
    }
}

/// Builds the graph of a dump and finds its roots.
pub(crate) fn find(ranges: &BlockRanges<'_>, sites: &Sites, style: &Style<'_>) -> RootedGraph {
    let dump = ranges.dump();
    let mut builder = Builder::default();
    let mut self_links = Vec::new();
    ranges.each_link(|link| {
        if link.from != link.to {
            builder.add(link.from, link.to);
        } else if self_links.last() != Some(&link.from) {
            self_links.push(link.from);
        }
    });
    let statics = statics(ranges);
    let number = |at: usize| u32::try_from(at).unwrap_or(NONE);
    let blocks = dump.blocks.len();
    for (at, place) in statics.iter().enumerate() {
        place.targets.iter().for_each(|&block| builder.add(number(blocks + at), block));
    }
    let mut nodes = blocks + statics.len();
    let graph = builder.finish(nodes);
    let mut reached = vec![false; nodes];
    let (mut heads, mut cycles) = (Vec::new(), Vec::new());
    for node in 0..number(nodes) {
        if graph.sources(node).is_empty() {
            graph.reach(node, &mut reached);
            if self_links.binary_search(&node).is_ok() {
                cycles.push(vec![node]);
            } else {
                heads.push(node);
            }
        }
    }
    cycles.append(&mut loose_cycles(&graph, &reached));
    drop(reached);
    let mut builder = graph.into_builder();
    for cycle in &cycles {
        cycle.iter().for_each(|&block| builder.add(number(nodes), block));
        nodes += 1;
    }
    let cycle_nodes = number(nodes - cycles.len())..number(nodes);
    heads.iter().copied().chain(cycle_nodes).for_each(|head| builder.add(number(nodes), head));
    let mut external = ExternalRoots::new(dump, style);
    heads.retain(|&head| (head as usize) < blocks);
    let heads =
        heads.into_iter().map(|block| Head { block, external: external.of_block(block) }).collect();
    let cycles = cycles.into_iter().map(|blocks| {
        let handles = count_handles(ranges, sites, &blocks);
        LooseCycle { external: external.of_cycle(&blocks), blocks, handles }
    });
    let cycles = cycles.collect();
    let statics = statics.into_iter().map(|place| place.name).collect();
    let roots = Roots { statics, cycles, heads, external: external.list };
    // The root is the last node, even if it holds nothing.
    RootedGraph { graph: builder.finish(nodes + 1), roots }
}

/// The name of a static, or of other memory outside the heap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RootName {
    pub(crate) name: String,
    pub(crate) is_static: bool,
}

/// A static, and the blocks that it points at.
struct StaticRoot {
    name: RootName,
    targets: Vec<u32>,
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
