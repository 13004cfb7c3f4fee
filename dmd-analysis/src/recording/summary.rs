//! Sums of a recording: chosen blocks, the peak, and lifetimes.

use super::{Block, Point, Recording, TEMPORARY, Which};

/// Blocks and bytes, estimated from the sample, or exact if every block was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Blocks.
    pub blocks: f64,
    /// Usable bytes.
    pub bytes: f64,
    /// The variance of the bytes, estimated from the same sample.
    variance: f64,
}

impl Estimate {
    /// Returns the standard error of the bytes: 68 % of such recordings are closer to the true
    /// value.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    fn add(&mut self, block: &Block) {
        self.blocks += block.weight;
        self.bytes += block.bytes();
        // Each block is sampled independently with a probability of 1 / weight.
        self.variance += block.bytes() * block.bytes() * (1.0 - 1.0 / block.weight);
    }
}

/// The peak of the bytes in live blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peak {
    /// The time, in microseconds since the beginning.
    pub time: u64,
    /// The exact bytes in live blocks.
    pub bytes: u64,
    /// True if it is the high-water mark of the program. Otherwise it is the highest point of the
    /// timeline, and the heap may have been bigger between two points.
    pub is_exact: bool,
}

/// A class of blocks with similar lifetimes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lifetime {
    /// The lower bound in microseconds, included.
    pub from: u64,
    /// The upper bound in microseconds, excluded; `None` for blocks that were alive at the end.
    pub to: Option<u64>,
    /// The sum of the blocks.
    pub sum: Estimate,
}

/// The bounds between the classes of lifetimes, in microseconds.
const BOUNDS: [u64; 7] = [TEMPORARY, 10_000, 100_000, 1_000_000, 10_000_000, 60_000_000, u64::MAX];

impl Recording {
    /// Returns the chosen blocks.
    pub fn blocks(&self, which: Which) -> impl Iterator<Item = Block> {
        let peak = self.peak().map(|peak| peak.time);
        let is_chosen = move |(number, block): &(usize, Block)| match which {
            Which::Allocated => true,
            Which::Retained => block.freed.is_none(),
            Which::Freed => block.freed.is_some(),
            Which::Temporary => block.lifetime().is_some_and(|lifetime| lifetime < TEMPORARY),
            Which::AtPeak => peak.is_some_and(|peak| self.lives_at(*number, peak)),
        };
        self.blocks.iter().enumerate().filter(is_chosen).map(|(_, block)| block)
    }

    /// Returns the sum of the chosen blocks.
    #[must_use]
    pub fn sum(&self, which: Which) -> Estimate {
        let mut sum = Estimate::default();
        self.blocks(which).for_each(|block| sum.add(&block));
        sum
    }

    /// Returns the peak of the bytes in live blocks: to the event if every block was recorded from
    /// the start of the program, and otherwise among the points of the timeline.
    #[must_use]
    pub fn peak(&self) -> Option<Peak> {
        if let Some(exact) = &self.exact_peak {
            return Some(exact.peak);
        }
        let highest = self.timeline.iter().max_by_key(|point| point.live_bytes())?;
        Some(Peak { time: highest.time, bytes: highest.live_bytes(), is_exact: false })
    }

    /// Returns the first and the last exact sums.
    #[must_use]
    pub fn ends(&self) -> Option<(Point, Point)> {
        Some((*self.timeline.first()?, *self.timeline.last()?))
    }

    /// Returns the classes of lifetimes from short to long, and last the blocks that were alive at
    /// the end.
    #[must_use]
    pub fn lifetimes(&self) -> Vec<Lifetime> {
        let mut from = 0;
        let mut classes: Vec<_> = BOUNDS
            .into_iter()
            .map(|to| Lifetime {
                from: std::mem::replace(&mut from, to),
                to: Some(to),
                sum: Estimate::default(),
            })
            .collect();
        let mut living = Lifetime { from: 0, to: None, sum: Estimate::default() };
        for block in self.blocks.iter() {
            let class = match block.lifetime() {
                None => Some(&mut living),
                Some(time) => classes.iter_mut().find(|class| class.to > Some(time)),
            };
            if let Some(class) = class {
                class.sum.add(&block);
            }
        }
        classes.push(living);
        classes.retain(|class| class.sum.blocks > 0.0);
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Blocks, Freed};

    fn block(allocated_at: u64, freed: Option<u64>, usable: u64) -> Block {
        let freed = freed.map(|time| Freed { time, thread: 1, site: 0 });
        Block { site: 1, requested: usable, usable, weight: 1.0, allocated_at, freed }
    }

    #[test]
    fn a_drawn_block_stands_for_several_and_adds_to_the_error() {
        let drawn = Block { requested: 10, weight: 2.5, ..block(0, None, 16) };
        assert_eq!((drawn.bytes(), drawn.requested_bytes()), (40.0, 25.0));
        let certain = block(0, None, 100);
        let blocks = [drawn, drawn, certain].into_iter().collect();
        let sum = Recording { blocks, ..Recording::default() }.sum(Which::Allocated);
        assert_eq!((sum.blocks, sum.bytes), (6.0, 180.0));
        // Twice 40² · (1 − 1 / 2.5), and nothing of the block that was certain.
        assert!((sum.error() - 1920_f64.sqrt()).abs() < 1e-9, "{}", sum.error());
    }

    #[test]
    fn blocks_are_chosen_by_when_they_lived() {
        let point = |time, allocated_bytes, freed_bytes| Point {
            time,
            allocated_bytes,
            freed_bytes,
            ..Point::default()
        };
        let recording = Recording {
            blocks: Blocks::from_iter([
                block(0, None, 1),
                block(10, Some(20), 10),
                block(10, Some(50_000), 100),
                block(60_000, Some(70_000), 1000),
            ]),
            timeline: vec![
                point(0, 1, 0),
                point(15, 111, 0),
                point(30, 111, 10),
                point(80_000, 1111, 1110),
            ],
            ..Recording::default()
        };
        let bytes = |which| recording.sum(which).bytes;
        assert_eq!(bytes(Which::Allocated), 1111.0);
        assert_eq!(bytes(Which::Retained), 1.0);
        assert_eq!(bytes(Which::Temporary), 10.0);
        assert_eq!(bytes(Which::AtPeak), 111.0);
        assert_eq!(recording.peak(), Some(Peak { time: 15, bytes: 111, is_exact: false }));
        let classes: Vec<_> = recording
            .lifetimes()
            .iter()
            .map(|class| (class.from, class.to, class.sum.bytes))
            .collect();
        assert_eq!(
            classes,
            [(0, Some(1000), 10.0), (10_000, Some(100_000), 1100.0), (0, None, 1.0)]
        );
    }
}
