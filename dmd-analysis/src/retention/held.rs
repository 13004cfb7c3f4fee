//! By which ways blocks are held: the shortest from the root, through named statics, types and fields.

use std::{error, fmt};

use rustc_hash::{FxHashMap, FxHashSet};

use super::alike::{Key, Keys};
use super::paths::Nearest;
use super::step::Step;
use super::{Holds, Node};
use crate::analysis::by::report_names;
use crate::analysis::{Grouping, SortBy, Stacks, digest};
use crate::read::Block;

/// Whose ways are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The block that has this address.
    Block(u64),
    /// Blocks of types with this text in their names.
    Type(String),
    /// Blocks that are reported by a path or field with this text in its name.
    Reporter(String),
    /// Blocks that were allocated below a function with this text in its name.
    Site(String),
    /// The blocks of this record, from 1, as `about-memory dmd` numbers them.
    Record(usize),
}

/// No block of the dump is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotThere(Target);

impl fmt::Display for NotThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Block(address) => write!(
                f,
                "no block holds 0x{address:x}: name an address of this dump, in hexadecimal, as `addr` or `block addresses` \
                 has it"
            ),
            Target::Type(text) => {
                write!(
                    f,
                    "no block is of a type with `{text}` in its name: `dmd --by type` lists them"
                )
            }
            Target::Reporter(text) => write!(
                f,
                "no block is reported by a path or field with `{text}` in its name: `dmd --by reporter` and `dmd --by field` \
                 list them"
            ),
            Target::Site(text) => write!(
                f,
                "no block was allocated below a function with `{text}` in its name: `dmd --by stack` lists them"
            ),
            Target::Record(number) => {
                write!(f, "there is no record {number}: `dmd` numbers them from 1, biggest first")
            }
        }
    }
}

impl error::Error for NotThere {}

/// How many ways are looked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WayOptions {
    /// The ways to show.
    pub top: usize,
    /// The nodes that may be looked at on the search for several ways to one block.
    pub work: usize,
}

impl Default for WayOptions {
    fn default() -> Self {
        Self { top: 5, work: 20_000_000 }
    }
}

/// Blocks, and by which ways they are held.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The blocks, as their places in the dump.
    pub blocks: Vec<usize>,
    /// Their own bytes.
    pub own: u64,
    /// The bytes that would be given back with all of them.
    pub retained: u64,
    /// Of one block: the nearest that all ways to it lead through, if there is any.
    pub keeper: Option<Step>,
    /// Of one block, its shortest ways; of several, the shortest way of each, alike ones together, most bytes first.
    pub ways: Vec<Way>,
    /// Of several blocks: those that come by ways beyond the first.
    pub others: u64,
}

/// A way from where the dump begins to a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Way {
    /// How many of the blocks are held this way.
    pub blocks: u64,
    /// Their own bytes.
    pub bytes: u64,
    /// From the outside inwards, to one of these blocks.
    pub steps: Vec<Step>,
}

impl Holds<'_> {
    /// Finds the ways by which blocks are held.
    ///
    /// # Errors
    ///
    /// If no block is meant.
    pub fn held(&self, target: &Target, options: &WayOptions) -> Result<Held, NotThere> {
        let blocks = self.blocks_of(target).ok_or_else(|| NotThere(target.clone()))?;
        let nearest = Nearest::new(&self.graph, self.root());
        let own = blocks.iter().map(|&block| self.size(block)).fold(0, u64::saturating_add);
        let (retained, keeper, (ways, others)) = match blocks[..] {
            [block] => {
                let keeper = self.dominators.parent(block).filter(|&node| node != self.root());
                let keeper = keeper.map(|node| self.step(node));
                (self.retained[block as usize], keeper, self.ways_to(block, &nearest, options))
            }
            _ => {
                let mut is_target = vec![false; self.dump.blocks.len()];
                blocks.iter().for_each(|&block| is_target[block as usize] = true);
                let retained = self.without(|block| is_target[block]);
                (retained, None, self.ways_to_all(&blocks, &nearest, options))
            }
        };
        let blocks = blocks.iter().map(|&block| block as usize).collect();
        Ok(Held { blocks, own, retained, keeper, ways, others })
    }

    /// The blocks that are meant, if there are any.
    fn blocks_of(&self, target: &Target) -> Option<Vec<u32>> {
        let dump = self.dump;
        let frames = |text: &str, block: &Block| {
            self.sites.get(block.alloc).frames.iter().any(|frame| frame.contains(text))
        };
        let reporters = |text: &str, block: &Block| {
            let names = report_names(dump, block, |site| {
                let part = |part: &Option<String>| part.clone().unwrap_or_default();
                format!("{} {}.{}", site.path, part(&site.type_name), part(&site.field))
            });
            names.is_some_and(|names| names.iter().any(|name| name.contains(text)))
        };
        let is_meant = |block: &Block| match target {
            Target::Type(text) => {
                self.sites.get(block.alloc).block_type.describe().contains(text.as_str())
            }
            Target::Reporter(text) => reporters(text, block),
            Target::Site(text) => frames(text, block),
            Target::Block(_) | Target::Record(_) => false,
        };
        let found = match target {
            Target::Block(address) => {
                self.ranges.block_at(*address).map(|(block, _)| vec![block])?
            }
            Target::Record(number) => self.record(*number)?,
            _ => dump
                .blocks
                .iter()
                .zip(0..)
                .filter(|(block, _)| is_meant(block))
                .map(|it| it.1)
                .collect(),
        };
        Some(found).filter(|found| !found.is_empty())
    }

    /// The blocks of a record, as they are numbered in the text of all records.
    fn record(&self, number: usize) -> Option<Vec<u32>> {
        let mut stacks = Stacks::default();
        let digest = digest(self.dump, &Grouping::default(), &mut stacks);
        let records = digest.sections.first()?.records.iter().collect();
        let first = SortBy::Usable.first(records, number);
        let record = first.get(number.checked_sub(1)?)?;
        let block = |address: &u64| self.ranges.block_at(*address).map(|(block, _)| block);
        Some(record.addrs.iter().filter_map(block).collect())
    }

    /// The shortest ways to one block. Ways that differ only in which of alike blocks they pass are one.
    fn ways_to(&self, block: u32, nearest: &Nearest, options: &WayOptions) -> (Vec<Way>, u64) {
        let keys = Keys::new(self);
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        nearest.ways(&self.graph, block, options.work, |way| {
            let mut passed: Vec<Key> = way.iter().map(|&node| keys.of(self, node)).collect();
            passed.dedup();
            if seen.insert(passed) {
                found.push(way);
            }
            found.len() >= options.top
        });
        if found.is_empty() && options.top > 0 {
            // The way is so long that the search for several gave up.
            found.push(nearest.way(block));
        }
        let bytes = self.size(block);
        let way = |way: Vec<u32>| Way { blocks: 1, bytes, steps: self.steps(&way) };
        (found.into_iter().map(way).collect(), 0)
    }

    /// The shortest way to each of several blocks, alike ways together; and how many blocks come by others.
    fn ways_to_all(
        &self,
        blocks: &[u32],
        nearest: &Nearest,
        options: &WayOptions,
    ) -> (Vec<Way>, u64) {
        let numbers = self.number_ways(nearest);
        let mut ways: FxHashMap<u32, (u64, u64, u32)> = FxHashMap::default();
        for &block in blocks {
            let way = ways.entry(numbers[block as usize]).or_insert((0, 0, block));
            way.0 += self.count(block);
            way.1 = way.1.saturating_add(self.size(block));
        }
        let mut ways: Vec<(u64, u64, u32)> = ways.into_values().collect();
        ways.sort_unstable_by_key(|&(_, bytes, block)| (std::cmp::Reverse(bytes), block));
        let others = ways.iter().skip(options.top).map(|way| way.0).sum();
        let shown = ways.into_iter().take(options.top).map(|(blocks, bytes, block)| Way {
            blocks,
            bytes,
            steps: self.steps(&nearest.way(block)),
        });
        (shown.collect(), others)
    }

    /// By node: the number of its shortest way; of ways that pass alike nodes the same, however many in a row.
    fn number_ways(&self, nearest: &Nearest) -> Vec<u32> {
        let keys = Keys::new(self);
        let mut known: FxHashMap<(u32, Key), u32> = FxHashMap::default();
        let mut numbers = vec![0; self.graph.len()];
        for &node in &nearest.order {
            let Some(before) = nearest.before(node) else { continue };
            let is_first = self.node(before) == Node::Root;
            let key = if is_first { keys.of_root(self, node) } else { keys.of(self, node) };
            let way = numbers[before as usize];
            numbers[node as usize] = if !is_first && keys.of(self, before) == key {
                way
            } else {
                let next = u32::try_from(known.len() + 1).unwrap_or(super::NONE);
                *known.entry((way, key)).or_insert(next)
            };
        }
        numbers
    }
}
