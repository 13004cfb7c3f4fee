//! The sums of what a piece of code allocates.

use std::collections::HashMap;

use crate::event::events::Event;
use crate::event::journal::NumberedEvent;

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
    /// The usable bytes of each block that was not freed, the biggest first.
    pub leaked: Vec<usize>,
}

impl Spent {
    /// Adds up events, which are in the order in which they happened.
    pub(super) fn of(events: &[NumberedEvent]) -> Self {
        let mut spent = Spent::default();
        let mut live = HashMap::new();
        let mut in_use = 0;
        for NumberedEvent { event, .. } in events {
            match *event {
                Event::Allocated { address, block } => {
                    let usable = block.usable;
                    spent.blocks += 1;
                    spent.bytes += usable;
                    in_use += usable;
                    spent.peak = spent.peak.max(in_use);
                    live.insert(address, usable);
                }
                // Blocks that were allocated before do not count.
                Event::Freed { address, .. } => in_use -= live.remove(&address).unwrap_or(0),
            }
        }
        spent.leaked = live.into_values().collect();
        spent.leaked.sort_unstable_by(|one, other| other.cmp(one));
        spent
    }
}
