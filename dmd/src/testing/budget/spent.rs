//! The sums of what a piece of code allocates.

use std::collections::{BTreeMap, HashMap};

use crate::event::events::Event;
use crate::event::journal::NumberedEvent;
use crate::stack::site::SiteId;
use crate::testing::own_lines;

/// The allocations of a piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The number of allocations and reallocations.
    pub blocks: usize,
    /// The sum of the usable bytes of all allocated blocks.
    pub bytes: usize,
    /// The high-water mark of these bytes.
    pub peak: usize,
    /// The usable bytes of each block that lived at the high-water mark, the biggest first. Their
    /// sum is `peak`. If it was reached several times, this is the first time.
    pub at_peak: Vec<usize>,
    /// The usable bytes of each block that was not freed, the biggest first.
    pub leaked: Vec<usize>,
}

/// Live blocks of a piece of code.
pub(super) type Blocks = Vec<LiveBlock>;

/// A live block: its allocation site, and its usable bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveBlock {
    site: SiteId,
    usable: usize,
}

/// The sums, with the sites of blocks for messages.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) spent: Spent,
    pub(super) at_peak: Blocks,
    pub(super) leaked: Blocks,
}

impl Account {
    /// Adds up events, which are in the order in which they happened.
    pub(super) fn of(events: &[NumberedEvent]) -> Self {
        let mut spent = Spent::default();
        let mut live = HashMap::new();
        let (mut in_use, mut at_peak) = (0, 0);
        for (NumberedEvent { event, .. }, place) in events.iter().zip(1..) {
            match *event {
                Event::Allocated { address, block } => {
                    let usable = block.usable;
                    spent.blocks += 1;
                    spent.bytes += usable;
                    in_use += usable;
                    if in_use > spent.peak {
                        (spent.peak, at_peak) = (in_use, place);
                    }
                    live.insert(address, LiveBlock { site: block.site, usable });
                }
                // Blocks that were allocated before do not count.
                Event::Freed { address, .. } => {
                    in_use -= live.remove(&address).map_or(0, |block| block.usable);
                }
            }
        }
        let leaked = sorted(live);
        let at_peak = sorted(live_after(&events[..at_peak]));
        let sizes = |blocks: &Blocks| blocks.iter().map(|block| block.usable).collect();
        (spent.at_peak, spent.leaked) = (sizes(&at_peak), sizes(&leaked));
        Account { spent, at_peak, leaked }
    }
}

/// Returns the blocks that live after these events.
fn live_after(events: &[NumberedEvent]) -> HashMap<usize, LiveBlock> {
    let mut live = HashMap::new();
    for NumberedEvent { event, .. } in events {
        match *event {
            Event::Allocated { address, block } => {
                live.insert(address, LiveBlock { site: block.site, usable: block.usable });
            }
            Event::Freed { address, .. } => {
                live.remove(&address);
            }
        }
    }
    live
}

fn sorted(live: HashMap<usize, LiveBlock>) -> Blocks {
    let mut blocks: Blocks = live.into_values().collect();
    blocks.sort_unstable_by_key(|block| (std::cmp::Reverse(block.usable), block.site));
    blocks
}

/// The most places that a message lists.
const LISTED: usize = 10;

/// Returns a line for each place in the program, those with the most bytes first.
pub(super) fn lines(blocks: &Blocks) -> Vec<String> {
    let mut names: HashMap<SiteId, String> = HashMap::new();
    let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for block in blocks {
        let name = names.entry(block.site).or_insert_with(|| place(block.site));
        let (count, bytes) = places.entry(name.clone()).or_default();
        *count += 1;
        *bytes += block.usable;
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let listed = places.iter().take(LISTED).map(|(place, (count, bytes))| {
        let blocks = if *count == 1 { "block" } else { "blocks" };
        format!("  {bytes} bytes in {count} {blocks}: {place}")
    });
    let mut lines: Vec<String> = listed.collect();
    let rest: usize = places.iter().skip(LISTED).map(|(_, (_, bytes))| bytes).sum();
    if rest > 0 {
        lines.push(format!("  {rest} bytes in {} more places", places.len() - LISTED));
    }
    lines
}

/// Returns the program's innermost function that allocated, with its line.
fn place(site: SiteId) -> String {
    own_lines::of(site).into_iter().next().unwrap_or_else(|| "without a stack".to_owned())
}
