//! The graph of a dump, and what holds the blocks that no other block points at: statics, what reporters and skipped fields are
//! known to reach, or what no dump knows.

use rustc_hash::FxHashMap;

use super::NONE;
use super::circle::{Counted, count};
use super::cycles::loose;
use super::graph::{Builder, Graph};
use crate::analysis::links::Ranges;
use crate::analysis::people::Style;
use crate::analysis::remedies::readable;
use crate::analysis::sites::{Sites, reporter};
use crate::read::{Block, Dump, Holder, StaticPlace, TraceId};

/// What holds blocks that no block points at.
#[derive(Debug)]
pub(crate) struct Roots {
    /// The names of the statics that point at blocks.
    pub(crate) statics: Vec<String>,
    /// The cycles that nothing outside points at.
    pub(crate) cycles: Vec<Cycle>,
    /// What is known of who holds a block that nothing else points at; by block.
    blocks: Vec<(u32, u32)>,
    /// What is known of such holders, each once.
    pub(crate) outside: Vec<Outside>,
}

/// Blocks that reach each other, and that no other block and no static points at.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) blocks: Vec<u32>,
    /// The number of what is known of who holds it.
    pub(crate) outside: u32,
    pub(crate) counted: Counted,
}

/// What is known of who holds a block from outside of what the dump shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outside {
    /// A reporter came to it: its path, and the field.
    Reported(String),
    /// A field leads there that its type skips.
    Skipped(String),
    /// Nothing.
    Unknown,
}

impl Roots {
    /// The number of what is known of who holds the block, if nothing else points at it.
    pub(crate) fn outside_of(&self, block: u32) -> Option<u32> {
        let at = self.blocks.binary_search_by_key(&block, |(block, _)| *block).ok()?;
        Some(self.blocks[at].1)
    }
}

/// The graph of a dump.
pub(crate) fn find(
    dump: &Dump,
    ranges: &Ranges,
    sites: &Sites,
    style: &Style<'_>,
) -> (Graph, Roots) {
    let mut builder = Builder::default();
    let mut on_itself = Vec::new();
    ranges.each_link(dump, |link| {
        if link.from != link.to {
            builder.add(link.from, link.to);
        } else if on_itself.last() != Some(&link.from) {
            on_itself.push(link.from);
        }
    });
    let (statics, targets) = statics(dump, ranges);
    let number = |at: usize| u32::try_from(at).unwrap_or(NONE);
    let blocks = dump.blocks.len();
    for (at, targets) in targets.iter().enumerate() {
        targets.iter().for_each(|&block| builder.add(number(blocks + at), block));
    }
    let mut known = blocks + statics.len();
    let graph = builder.graph(known);
    let mut reached = vec![false; known];
    let (mut heads, mut cycles) = (Vec::new(), Vec::new());
    for node in 0..number(known) {
        if graph.sources(node).is_empty() {
            graph.reach(node, &mut reached);
            if on_itself.binary_search(&node).is_ok() {
                cycles.push(vec![node]);
            } else {
                heads.push(node);
            }
        }
    }
    cycles.append(&mut loose(&graph, &reached));
    drop((graph, reached));
    for cycle in &cycles {
        cycle.iter().for_each(|&block| builder.add(number(known), block));
        known += 1;
    }
    let cycle_nodes = number(known - cycles.len())..number(known);
    heads.iter().copied().chain(cycle_nodes).for_each(|head| builder.add(number(known), head));
    let mut labels = Labels { dump, style, known: FxHashMap::default(), list: Vec::new() };
    heads.retain(|&head| (head as usize) < blocks);
    let heads = heads.into_iter().map(|head| (head, labels.of_block(head))).collect();
    let cycles = cycles.into_iter().map(|blocks| {
        let outside = labels.of_cycle(&blocks);
        let counted = count(dump, ranges, sites, &blocks);
        Cycle { blocks, outside, counted }
    });
    let cycles = cycles.collect();
    let roots = Roots { statics, cycles, blocks: heads, outside: labels.list };
    // The root is the last node, also where it holds nothing.
    (builder.finish(known + 1), roots)
}

/// The statics of a dump, and the blocks that each points at.
fn statics(dump: &Dump, ranges: &Ranges) -> (Vec<String>, Vec<Vec<u32>>) {
    let Some(ours) = &dump.extension else { return (Vec::new(), Vec::new()) };
    let mut names: Vec<String> = Vec::new();
    let mut targets: Vec<Vec<u32>> = Vec::new();
    let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
    let mut add = |place: &StaticPlace, block: u32| {
        let at = *numbers.entry(static_name(place)).or_insert_with_key(|name| {
            names.push(name.clone());
            targets.push(Vec::new());
            names.len() - 1
        });
        targets[at].push(block);
    };
    for word in &ours.statics {
        if let Some((block, _)) = ranges.block_at(word.to) {
            add(&word.place, block);
        }
    }
    for (block, index) in dump.blocks.iter().zip(0..) {
        if let Some(Holder::Static(place)) = holder(dump, block) {
            add(place, index);
        }
    }
    (names, targets)
}

/// What holds an unreported block, if a word there points at it.
fn holder<'d>(dump: &'d Dump, block: &Block) -> Option<&'d Holder> {
    let id = block.held_by.filter(|_| !block.is_held_through)?;
    dump.extension.as_ref()?.holders.get(&id)
}

fn static_name(place: &StaticPlace) -> String {
    match &place.name {
        Some(name) => readable(name).to_owned(),
        None => {
            let file = place.module.rsplit('/').next().unwrap_or_default();
            format!("(of no name, in {file} at 0x{:x})", place.offset)
        }
    }
}

/// What is known of who holds blocks, each answer once.
struct Labels<'d> {
    dump: &'d Dump,
    style: &'d Style<'d>,
    /// By the first report: it is told in words only once.
    known: FxHashMap<Option<TraceId>, u32>,
    list: Vec<Outside>,
}

impl Labels<'_> {
    fn of_block(&mut self, block: u32) -> u32 {
        let block = &self.dump.blocks[block as usize];
        if let Some(report) = self.dump.reports(block).and_then(<[TraceId]>::first) {
            if let Some(&number) = self.known.get(&Some(*report)) {
                return number;
            }
            let words = reporter(self.dump, Some(*report), self.style);
            let number = self.number(Outside::Reported(words));
            self.known.insert(Some(*report), number);
            return number;
        }
        match holder(self.dump, block) {
            Some(Holder::Skipped(field)) => {
                let (file, line) = (self.style.file(&field.file), field.line);
                let words = format!("{}.{} ({file}:{line})", field.type_name, field.field);
                self.number(Outside::Skipped(words))
            }
            _ => match self.known.get(&None) {
                Some(&number) => number,
                None => {
                    let number = self.number(Outside::Unknown);
                    self.known.insert(None, number);
                    number
                }
            },
        }
    }

    /// What is known of any of its blocks: what a reporter reaches comes first, then what a skipped field does.
    fn of_cycle(&mut self, blocks: &[u32]) -> u32 {
        let numbers: Vec<u32> = blocks.iter().map(|&block| self.of_block(block)).collect();
        numbers.into_iter().min_by_key(|&number| &self.list[number as usize]).unwrap_or(0)
    }

    fn number(&mut self, outside: Outside) -> u32 {
        let at = self.list.iter().position(|known| *known == outside).unwrap_or_else(|| {
            self.list.push(outside);
            self.list.len() - 1
        });
        u32::try_from(at).unwrap_or(NONE)
    }
}
