//! Reads the blocks of a recording, as often as they are wanted. In memory are those that live.

use std::io::ErrorKind;

use rustc_hash::FxHashMap;

use super::events::{Events, Part};
use super::packed::Event;
use super::{Block, Freed, Recording, RecordingError, TEMPORARY, Which};

/// A block that lives. There may be many: this is smaller than a [`Block`].
struct Live {
    number: u64,
    requested: u64,
    usable: u64,
    weight: f64,
    allocated_at: u64,
    site: u32,
}

impl Live {
    fn block(&self, freed: Option<Freed>) -> Block {
        let Live { number, requested, usable, weight, allocated_at, site } = *self;
        Block { number, site, requested, usable, weight, allocated_at, freed }
    }
}

impl Recording {
    /// Reads all blocks: first those that were freed, in the order of their frees, and then the
    /// others in any order.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or was changed since it was read first.
    pub fn each_block(&self, mut each: impl FnMut(&Block)) -> Result<(), RecordingError> {
        if self.block_count == 0 {
            return Ok(());
        }
        let mut live: FxHashMap<u64, Live> = FxHashMap::default();
        let mut count = 0;
        let mut event = |time, event| match event {
            Event::Allocated { address, site, requested, usable, weight } => {
                let block =
                    Live { number: count, site, requested, usable, weight, allocated_at: time };
                // If the end of the previous block at this address was lost, it ends now at the
                // latest.
                if let Some(before) = live.insert(address, block) {
                    let freed = Freed { time, thread: 0, site: 0, blocks: count };
                    each(&before.block(Some(freed)));
                }
                count += 1;
            }
            Event::Freed { address, thread, site, .. } => {
                // A block from before the recording, or whose allocation was lost, is not in it.
                if let Some(block) = live.remove(&address) {
                    let freed = Freed { time, thread, site, blocks: count };
                    each(&block.block(Some(freed)));
                }
            }
        };
        let events = self.source.open().and_then(Events::open);
        let read = events.and_then(|events| {
            events.each(|time, part| {
                if let Part::Event(what) = part {
                    event(time, what);
                }
                Ok(())
            })
        });
        match read {
            Err(RecordingError::Io(error)) if error.kind() != ErrorKind::UnexpectedEof => {
                return Err(RecordingError::Io(error));
            }
            Ok(_) if count == self.block_count => {}
            // It was read to its end before.
            _ => return Err(RecordingError::Changed),
        }
        live.values().for_each(|block| each(&block.block(None)));
        Ok(())
    }

    /// Reads the chosen blocks, in the order of [`each_block`](Self::each_block).
    ///
    /// # Errors
    ///
    /// The same as those of [`each_block`](Self::each_block).
    pub fn each_of(
        &self,
        which: Which,
        mut each: impl FnMut(&Block),
    ) -> Result<(), RecordingError> {
        let peak = self.peak().map(|peak| peak.time);
        self.each_block(|block| {
            if self.is_chosen(block, which, peak) {
                each(block);
            }
        })
    }

    /// Returns whether a block is one of the chosen. `peak` is the time of the peak.
    pub(super) fn is_chosen(&self, block: &Block, which: Which, peak: Option<u64>) -> bool {
        match which {
            Which::Allocated => true,
            Which::Retained => block.freed.is_none(),
            Which::Freed => block.freed.is_some(),
            Which::Temporary => block.lifetime().is_some_and(|lifetime| lifetime < TEMPORARY),
            Which::AtPeak => peak.is_some_and(|peak| self.lives_at(block, peak)),
        }
    }

    /// Returns the chosen blocks, in the order of their allocation. Each takes 88 bytes of memory.
    ///
    /// # Errors
    ///
    /// The same as those of [`each_block`](Self::each_block).
    pub fn blocks(&self, which: Which) -> Result<Vec<Block>, RecordingError> {
        let mut blocks = Vec::new();
        self.each_of(which, |block| blocks.push(*block))?;
        blocks.sort_unstable_by_key(|block| block.number);
        Ok(blocks)
    }
}
