//! What a recording comes to: sums, the peak, and how long blocks lived.

use super::{Block, Point, Recording, TEMPORARY, Which};

/// Blocks and bytes, as estimated from the sample; exact where every block was recorded.
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
    /// The standard error of the bytes: of 100 such recordings, 68 are nearer to the truth than this.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    fn add(&mut self, block: &Block) {
        self.blocks += block.weight;
        self.bytes += block.bytes();
        // Each block is in with the probability 1 / weight, whatever the others are.
        self.variance += block.bytes() * block.bytes() * (1.0 - 1.0 / block.weight);
    }
}

/// When the program had the most in live blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peak {
    /// In microseconds since the beginning.
    pub time: u64,
    /// Bytes in live blocks, exact.
    pub bytes: u64,
}

/// Blocks that lived about as long.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lifetime {
    /// They lived at least so many microseconds.
    pub from: u64,
    /// And less than so many; those that live still have none.
    pub to: Option<u64>,
    /// How many, and how much.
    pub sum: Estimate,
}

/// The bounds between classes of lifetimes, in microseconds.
const BOUNDS: [u64; 7] = [TEMPORARY, 10_000, 100_000, 1_000_000, 10_000_000, 60_000_000, u64::MAX];

impl Recording {
    /// The chosen blocks.
    pub fn blocks(&self, which: Which) -> impl Iterator<Item = &Block> {
        let peak = self.peak().map(|peak| peak.time);
        self.blocks.iter().filter(move |block| match which {
            Which::Allocated => true,
            Which::Retained => block.freed.is_none(),
            Which::Temporary => block.lifetime().is_some_and(|lifetime| lifetime < TEMPORARY),
            Which::AtPeak => peak.is_some_and(|peak| block.lives_at(peak)),
        })
    }

    /// What the chosen blocks come to.
    #[must_use]
    pub fn sum(&self, which: Which) -> Estimate {
        let mut sum = Estimate::default();
        self.blocks(which).for_each(|block| sum.add(block));
        sum
    }

    /// When the program had the most in live blocks, as far as was looked.
    #[must_use]
    pub fn peak(&self) -> Option<Peak> {
        let highest = self.track.iter().max_by_key(|point| point.live_bytes())?;
        Some(Peak { time: highest.time, bytes: highest.live_bytes() })
    }

    /// The first and the last exact sums.
    #[must_use]
    pub fn ends(&self) -> Option<(Point, Point)> {
        Some((*self.track.first()?, *self.track.last()?))
    }

    /// How long blocks lived: classes from short to long, and last those that live still.
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
        for block in &self.blocks {
            let class = match block.lifetime() {
                None => Some(&mut living),
                Some(time) => classes.iter_mut().find(|class| class.to > Some(time)),
            };
            if let Some(class) = class {
                class.sum.add(block);
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

    fn block(born: u64, freed: Option<u64>, usable: u64) -> Block {
        let freed = freed.map(|time| (time, 1));
        Block { site: 1, requested: usable, usable, weight: 1.0, born, freed }
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
            blocks: vec![
                block(0, None, 1),
                block(10, Some(20), 10),
                block(10, Some(50_000), 100),
                block(60_000, Some(70_000), 1000),
            ],
            track: vec![
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
        assert_eq!(recording.peak(), Some(Peak { time: 15, bytes: 111 }));
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
