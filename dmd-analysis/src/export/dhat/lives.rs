//! What DHAT's file says of each place over time: lifetimes, the most that it had at once, what it had when the heap was largest.

use super::WirePoint;
use crate::heap::history::{History, Sum};

/// The places of a recording, with all but their frames.
pub(super) struct Lives {
    pub(super) points: Vec<WirePoint>,
    /// When the heap was largest, in microseconds.
    pub(super) peak: u64,
}

/// What lives at a place while time passes, and the most that did.
#[derive(Clone, Copy, Default)]
struct Now {
    bytes: f64,
    blocks: f64,
    most: (f64, f64),
}

#[derive(Clone, Copy, Default)]
struct Sums {
    all: Sum,
    at_peak: Sum,
    at_end: Sum,
    lifetimes: f64,
    now: Now,
}

impl Lives {
    /// Up to a moment. `of_site` is the place of each site, of `count` places.
    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
    pub(super) fn new(history: &History, until: u64, of_site: &[usize], count: usize) -> Self {
        let recording = history.recording();
        let track = recording.timeline.iter().filter(|point| point.time <= until);
        let highest = track.max_by_key(|point| point.live_bytes());
        // Where nobody has noted the sums, the end stands for the peak.
        let peak = highest.map_or(until, |point| point.time);
        let mut sums = vec![Sums::default(); count];
        // The time, whether it is a birth (what ends at the same moment makes room first), and the block.
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (number, block) in recording.blocks.iter().enumerate() {
            if block.allocated_at > until {
                break;
            }
            let sum = &mut sums[of_site[history.site(block)]];
            let end = block.freed.map(|freed| freed.time).filter(|freed| *freed <= until);
            sum.all.add(block);
            sum.lifetimes +=
                end.unwrap_or(until).saturating_sub(block.allocated_at) as f64 * block.weight;
            if block.lives_at(peak) {
                sum.at_peak.add(block);
            }
            if end.is_none() {
                sum.at_end.add(block);
            }
            events.push((block.allocated_at, true, number));
            // One that ends at the moment of its birth was there all the same.
            events.extend(end.map(|end| (end.max(block.allocated_at + 1), false, number)));
        }
        events.sort_unstable();
        for (_, is_birth, number) in events {
            let block = &recording.blocks[number];
            sums[of_site[history.site(block)]].now.step(is_birth, block.bytes(), block.weight);
        }
        Lives { points: sums.iter().map(Sums::point).collect(), peak }
    }
}

impl Now {
    fn step(&mut self, is_birth: bool, bytes: f64, blocks: f64) {
        let sign = if is_birth { 1.0 } else { -1.0 };
        self.bytes += sign * bytes;
        self.blocks += sign * blocks;
        if self.bytes > self.most.0 {
            self.most = (self.bytes, self.blocks);
        }
    }
}

impl Sums {
    fn point(&self) -> WirePoint {
        let (bytes, blocks) = self.now.most;
        WirePoint {
            tb: whole(self.all.bytes),
            tbk: whole(self.all.blocks),
            tl: whole(self.lifetimes),
            mb: whole(bytes),
            mbk: whole(blocks),
            gb: whole(self.at_peak.bytes),
            gbk: whole(self.at_peak.blocks),
            eb: whole(self.at_end.bytes),
            ebk: whole(self.at_end.blocks),
            fs: Vec::new(),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and the conversion saturates"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
