//! The figures of DHAT's places over time: lifetimes, maxima, and amounts at the peak.

use super::WirePoint;
use crate::heap::history::{History, Sum};
use crate::recording::RecordingError;

/// The places of a recording, without their frames.
pub(super) struct Lives {
    pub(super) points: Vec<WirePoint>,
    /// The moment when the heap was largest, in microseconds.
    pub(super) peak: u64,
}

/// The live blocks of a place at one moment.
#[derive(Clone, Copy, Default)]
struct Live {
    bytes: f64,
    blocks: f64,
}

/// The live blocks of a place while time passes, and their maximum.
#[derive(Clone, Copy, Default)]
struct Now {
    live: Live,
    most: Live,
}

/// An allocation or a free.
struct Event {
    order: Order,
    /// The block's place in the profile.
    place: usize,
    block: Live,
}

/// The order of events: by the number of blocks that were allocated before, and of those with the
/// same number the frees first. Times would not do, since many events share a microsecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    allocated_before: u64,
    is_allocation: bool,
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
    /// Adds up a recording up to a moment. `of_site` contains the place of each site, of `count`
    /// places.
    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
    ///
    /// # Errors
    ///
    /// If the file of the recording cannot be read.
    pub(super) fn new(
        history: &History,
        until: u64,
        of_site: &[usize],
        count: usize,
    ) -> Result<Self, RecordingError> {
        let recording = history.recording();
        let track = recording.timeline.iter().filter(|point| point.time <= until);
        let highest = track.max_by_key(|point| point.live_bytes());
        // In a recording without sums, the end stands for the peak.
        let exact = recording.peak().filter(|peak| peak.is_exact && peak.time <= until);
        let highest = highest.map(|point| point.time);
        let peak = exact.map(|peak| peak.time).or(highest).unwrap_or(until);
        let mut sums = vec![Sums::default(); count];
        let mut events: Vec<Event> = Vec::new();
        recording.each_block(|block| {
            if block.allocated_at > until {
                return;
            }
            let place = of_site[history.site(block)];
            let sum = &mut sums[place];
            let freed = block.freed.filter(|freed| freed.time <= until);
            let end = freed.map(|freed| freed.time);
            sum.all.add(block);
            sum.lifetimes +=
                end.unwrap_or(until).saturating_sub(block.allocated_at) as f64 * block.weight;
            if recording.lives_at(block, peak) {
                sum.at_peak.add(block);
            }
            if end.is_none() {
                sum.at_end.add(block);
            }
            let live = Live { bytes: block.bytes(), blocks: block.weight };
            let event = |allocated_before, is_allocation| {
                let order = Order { allocated_before, is_allocation };
                Event { order, place, block: live }
            };
            events.push(event(block.number, true));
            events.extend(freed.map(|freed| event(freed.blocks, false)));
        })?;
        events.sort_unstable_by_key(|event| event.order);
        for Event { order, place, block } in events {
            sums[place].now.step(order.is_allocation, block);
        }
        Ok(Lives { points: sums.iter().map(Sums::point).collect(), peak })
    }
}

impl Now {
    fn step(&mut self, is_allocation: bool, block: Live) {
        let sign = if is_allocation { 1.0 } else { -1.0 };
        self.live.bytes += sign * block.bytes;
        self.live.blocks += sign * block.blocks;
        if self.live.bytes > self.most.bytes {
            self.most = self.live;
        }
    }
}

impl Sums {
    fn point(&self) -> WirePoint {
        let Live { bytes, blocks } = self.now.most;
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
