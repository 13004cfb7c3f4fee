//! Sums of a recording: chosen blocks, the peak, and lifetimes.

use std::iter;

use super::{Block, Point, Recording, RecordingError, TEMPORARY, Which};

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

    /// Adds a block.
    pub fn add(&mut self, block: &Block) {
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

/// The sums of chosen blocks.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sums {
    /// All allocated blocks.
    pub allocated: Estimate,
    /// The blocks that were alive at the peak.
    pub at_peak: Estimate,
    /// The blocks that were alive at the end.
    pub retained: Estimate,
    /// The blocks that were freed within [`TEMPORARY`].
    pub temporary: Estimate,
    /// The classes of lifetimes from short to long, and last the blocks that were alive at the end.
    /// Classes without blocks are left out.
    pub lifetimes: Vec<Lifetime>,
}

impl Recording {
    /// Reads all blocks, and returns their sums.
    ///
    /// # Errors
    ///
    /// The same as those of [`each_block`](Self::each_block).
    pub fn sums(&self) -> Result<Sums, RecordingError> {
        let mut sums = Sums { lifetimes: classes(), ..Sums::default() };
        let peak = self.peak().map(|peak| peak.time);
        self.each_block(|block| {
            for (which, sum) in [
                (Which::Allocated, &mut sums.allocated),
                (Which::AtPeak, &mut sums.at_peak),
                (Which::Retained, &mut sums.retained),
                (Which::Temporary, &mut sums.temporary),
            ] {
                if self.is_chosen(block, which, peak) {
                    sum.add(block);
                }
            }
            let lifetime = block.lifetime();
            let is_of = |class: &&mut Lifetime| match lifetime {
                None => class.to.is_none(),
                Some(lifetime) => class.to > Some(lifetime),
            };
            if let Some(class) = sums.lifetimes.iter_mut().find(is_of) {
                class.sum.add(block);
            }
        })?;
        sums.lifetimes.retain(|class| class.sum.blocks > 0.0);
        Ok(sums)
    }

    /// Returns the sum of the chosen blocks.
    ///
    /// # Errors
    ///
    /// The same as those of [`each_block`](Self::each_block).
    pub fn sum(&self, which: Which) -> Result<Estimate, RecordingError> {
        let mut sum = Estimate::default();
        self.each_of(which, |block| sum.add(block))?;
        Ok(sum)
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
}

/// Returns the classes of lifetimes, without blocks.
fn classes() -> Vec<Lifetime> {
    let class = |from, to| Lifetime { from, to, sum: Estimate::default() };
    let mut from = 0;
    let freed = BOUNDS.into_iter().map(|to| class(std::mem::replace(&mut from, to), Some(to)));
    freed.chain(iter::once(class(0, None))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::read;

    #[test]
    fn a_drawn_block_stands_for_several_and_adds_to_the_error() {
        let lines = r#"{"recording":1,"pid":7,"startedMs":5,"sampleBytes":64}
["+",0,1,16,10,16,2.5]
["+",0,1,32,10,16,2.5]
["+",0,1,48,100,100]
"#;
        let recording = read(lines.as_bytes()).unwrap();
        let drawn = recording.blocks(Which::Allocated).unwrap()[0];
        assert_eq!((drawn.bytes(), drawn.requested_bytes()), (40.0, 25.0));
        let sum = recording.sum(Which::Allocated).unwrap();
        assert_eq!((sum.blocks, sum.bytes), (6.0, 180.0));
        // Twice 40² · (1 − 1 / 2.5), and nothing of the block that was certain.
        assert!((sum.error() - 1920_f64.sqrt()).abs() < 1e-9, "{}", sum.error());
    }

    #[test]
    fn blocks_are_chosen_by_when_they_lived() {
        let lines = r#"{"recording":1,"pid":7,"startedMs":5}
["=",0,1,1,0,0,0]
["+",0,1,16,1,1]
["+",10,1,32,10,10]
["+",0,1,48,100,100]
["=",5,111,3,0,0,0]
["-",5,32,1]
["=",10,111,3,10,1,0]
["-",49970,48,1]
["+",10000,1,64,1000,1000]
["-",10000,64,1]
["=",10000,1111,4,1110,3,0]
"#;
        let recording = read(lines.as_bytes()).unwrap();
        let sums = recording.sums().unwrap();
        for (which, bytes, sum) in [
            (Which::Allocated, 1111.0, sums.allocated),
            (Which::Retained, 1.0, sums.retained),
            (Which::Temporary, 10.0, sums.temporary),
            (Which::AtPeak, 111.0, sums.at_peak),
        ] {
            assert_eq!((sum.bytes, recording.sum(which).unwrap()), (bytes, sum), "{which:?}");
        }
        assert_eq!(recording.sum(Which::Freed).unwrap().bytes, 1110.0);
        let choices = [Which::Freed, Which::AtPeak, Which::Retained];
        let by_one_reading = recording.dumps(choices).unwrap();
        assert_eq!(by_one_reading, choices.map(|which| recording.dump(which).unwrap()));
        assert_ne!(by_one_reading[0], by_one_reading[1]);
        assert_eq!(recording.peak(), Some(Peak { time: 15, bytes: 111, is_exact: false }));
        let class = |class: &Lifetime| (class.from, class.to, class.sum.bytes);
        let classes: Vec<_> = sums.lifetimes.iter().map(class).collect();
        assert_eq!(
            classes,
            [(0, Some(1000), 10.0), (10_000, Some(100_000), 1100.0), (0, None, 1.0)]
        );
    }
}
