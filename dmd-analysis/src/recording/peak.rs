//! The exact peak of a recording that has every block from the start of the program.

use rustc_hash::FxHashMap;

use super::packed::Event;
use super::{Block, Peak, Recording};

/// The exact peak, and the event that made it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExactPeak {
    pub(super) peak: Peak,
    /// The number of blocks that had been allocated then.
    blocks: u64,
}

impl ExactPeak {
    /// Returns whether a block lived at the event that made the peak: the allocation of a block.
    fn lived(&self, block: &Block) -> bool {
        block.number < self.blocks && block.freed.is_none_or(|freed| freed.blocks >= self.blocks)
    }
}

/// Follows the bytes in live blocks from event to event.
#[derive(Debug, Default)]
pub(super) struct Follower {
    /// Bytes in live blocks, relative to the beginning.
    live: i128,
    /// The same by the first sums, less `live` at that time.
    base: Option<i128>,
    /// The number of blocks so far.
    blocks: u64,
    highest: i128,
    /// When it was highest.
    at_highest: ExactPeak,
    /// The usable bytes of live blocks by address, where frees do not state them.
    sizes: Option<FxHashMap<u64, u64>>,
}

impl Follower {
    pub(super) fn new(version: u64) -> Self {
        Self { sizes: (version == 1).then(FxHashMap::default), ..Self::default() }
    }

    /// Notes the live bytes of sums.
    pub(super) fn sums(&mut self, live: u64) {
        self.base.get_or_insert(i128::from(live) - self.live);
    }

    /// Notes that a block was allocated or freed, even one from before the recording.
    pub(super) fn event(&mut self, event: Event, time: u64) {
        match event {
            Event::Allocated { address, usable, .. } => {
                self.live += i128::from(usable);
                self.blocks += 1;
                if self.live > self.highest {
                    self.highest = self.live;
                    self.at_highest.blocks = self.blocks;
                    self.at_highest.peak.time = time;
                }
                if let Some(sizes) = &mut self.sizes {
                    sizes.insert(address, usable);
                }
            }
            Event::Freed { address, usable, .. } => {
                let known = self.sizes.as_mut().and_then(|sizes| sizes.remove(&address));
                self.freed(usable.or(known).unwrap_or(0));
            }
        }
    }

    /// Notes that a block of this many usable bytes was freed.
    pub(super) fn freed(&mut self, usable: u64) {
        self.live -= i128::from(usable);
    }

    /// Returns the peak, if there were sums.
    pub(super) fn peak(self) -> Option<ExactPeak> {
        let bytes = u64::try_from(self.base? + self.highest).ok()?;
        let ExactPeak { peak, blocks } = self.at_highest;
        Some(ExactPeak { peak: Peak { bytes, is_exact: true, ..peak }, blocks })
    }
}

impl Recording {
    /// Returns whether a block lives at this time, in microseconds since the beginning.
    ///
    /// At the time of the [peak](Self::peak), these are the blocks of the very event that made the
    /// peak, where that is known. Other events of that microsecond do not count.
    #[must_use]
    pub fn lives_at(&self, block: &Block, time: u64) -> bool {
        match &self.exact_peak {
            Some(exact) if exact.peak.time == time => exact.lived(block),
            _ => block.lives_at(time),
        }
    }
}
