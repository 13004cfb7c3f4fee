//! The blocks that a drop frees.

use std::collections::HashSet;

use crate::event::events::Event;
use crate::event::journal::NumberedEvent;
use crate::table::packed_block::Block;
use crate::testing::watch::ThreadWatch;

/// A block that was freed, and was allocated before the drop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freed {
    pub(super) address: usize,
    pub(super) block: Block,
}

/// Runs `act`, and returns the older blocks that this thread freed meanwhile.
pub(super) fn freed_by(act: impl FnOnce()) -> Vec<Freed> {
    let watch = ThreadWatch::begin();
    act();
    let events = watch.end();
    let mut new = HashSet::new();
    let mut freed = Vec::new();
    for NumberedEvent { event, .. } in events {
        match event {
            Event::Allocated { address, .. } => {
                new.insert(address);
            }
            Event::Freed { address, block, .. } => {
                if !new.remove(&address) {
                    freed.push(Freed { address, block });
                }
            }
        }
    }
    freed
}
