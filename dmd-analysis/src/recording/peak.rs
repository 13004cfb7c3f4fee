//! The exact peak of a recording that has every block from the start of the program.

use super::{Peak, Recording};

/// The exact peak, and the blocks that lived at that very event.
#[derive(Clone, Debug, Default)]
pub(super) struct ExactPeak {
    pub(super) peak: Peak,
    /// True for each block that lived, in the order of the blocks. Later blocks did not.
    lived: Vec<bool>,
}

impl ExactPeak {
    pub(super) fn lived(&self, block: usize) -> bool {
        self.lived.get(block).copied().unwrap_or(false)
    }
}

/// Follows the bytes in live blocks from event to event.
#[derive(Debug, Default)]
pub(super) struct Follower {
    /// Bytes in live blocks, relative to the beginning.
    live: i128,
    /// The same by the first sums, less `live` at that time.
    base: Option<i128>,
    highest: i128,
    time: u64,
    /// The number of blocks when it was highest.
    blocks: usize,
    /// Blocks that were freed since.
    freed_since: Vec<u32>,
    /// Blocks that were freed before, and so did not live.
    freed_before: Vec<u32>,
}

impl Follower {
    /// Notes the live bytes of sums.
    pub(super) fn sums(&mut self, live: u64) {
        self.base.get_or_insert(i128::from(live) - self.live);
    }

    /// Notes that the last of so many blocks was allocated.
    pub(super) fn allocated(&mut self, usable: u64, blocks: usize, time: u64) {
        self.live += i128::from(usable);
        if self.live > self.highest {
            (self.highest, self.time, self.blocks) = (self.live, time, blocks);
            self.freed_before.append(&mut self.freed_since);
        }
    }

    /// Notes that a block was freed; one from before the recording has no number.
    pub(super) fn freed(&mut self, usable: u64, block: Option<usize>) {
        self.live -= i128::from(usable);
        self.freed_since.extend(block.and_then(|block| u32::try_from(block).ok()));
    }

    /// Returns the peak, if there were sums.
    pub(super) fn peak(self) -> Option<ExactPeak> {
        let bytes = u64::try_from(self.base? + self.highest).ok()?;
        let mut lived = vec![true; self.blocks];
        for block in self.freed_before {
            if let Some(lived) = lived.get_mut(block as usize) {
                *lived = false;
            }
        }
        Some(ExactPeak { peak: Peak { time: self.time, bytes, is_exact: true }, lived })
    }
}

impl Recording {
    /// Returns whether a block lives at this time, in microseconds since the beginning. `number` is
    /// its place among the blocks.
    ///
    /// At the time of the [peak](Self::peak), these are the blocks of the very event that made the
    /// peak, where that is known. Other events of that microsecond do not count.
    #[must_use]
    pub fn lives_at(&self, number: usize, time: u64) -> bool {
        match &self.exact_peak {
            Some(exact) if exact.peak.time == time => exact.lived(number),
            _ => self.blocks.get(number).is_some_and(|block| block.lives_at(time)),
        }
    }
}
