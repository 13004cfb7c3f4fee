//! What is counted: groups of blocks that are alike, wherever they come from.

use super::breakdown::Axis;
use super::node::Key;

/// Blocks and bytes. Negative where a difference is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// Number of blocks; of a sample, what it says of all.
    pub count: i64,
    /// Their usable bytes; of a sample, what it says of all.
    pub bytes: i64,
    /// How many of those bytes were not asked for.
    pub slop: i64,
    /// Number of blocks in the sample; without one, all.
    pub sampled_count: i64,
    /// Their usable bytes.
    pub sampled_bytes: i64,
}

impl Amount {
    /// So many blocks of these sizes, each of which stands for `weight` blocks.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "an estimate, as good as its digits"
    )]
    #[must_use]
    pub fn new(num: u64, (requested, slop): (u64, u64), weight: f64) -> Self {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let times = |size: u64| whole(num.saturating_mul(size));
        let (count, bytes) = (whole(num), times(requested).saturating_add(times(slop)));
        let exact =
            Amount { count, bytes, slop: times(slop), sampled_count: count, sampled_bytes: bytes };
        if weight <= 1.0 || !weight.is_finite() {
            return exact;
        }
        let blocks = num as f64 * weight;
        // Rounded once, here: what is rounded can be added up in any order.
        let all = |size: u64| (blocks * size as f64).round() as i64;
        Amount {
            count: blocks.round() as i64,
            bytes: all(requested).saturating_add(all(slop)),
            slop: all(slop),
            ..exact
        }
    }

    /// Adds blocks.
    pub fn add(&mut self, other: &Amount) {
        self.combine(other, i64::saturating_add);
    }

    pub(super) fn subtract(&mut self, other: &Amount) {
        self.combine(other, i64::saturating_sub);
    }

    fn combine(&mut self, other: &Amount, with: fn(i64, i64) -> i64) {
        let Amount { count, bytes, slop, sampled_count, sampled_bytes } = self;
        *count = with(*count, other.count);
        *bytes = with(*bytes, other.bytes);
        *slop = with(*slop, other.slop);
        *sampled_count = with(*sampled_count, other.sampled_count);
        *sampled_bytes = with(*sampled_bytes, other.sampled_bytes);
    }
}

/// How often blocks are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Not at all: dark matter.
    Unreported,
    /// Once, as it should be.
    Once,
    /// Twice or more often.
    Twice,
    /// The dump does not say.
    Other,
}

impl State {
    /// The keys of [`CoarseType`](super::CoarseType).
    pub(super) const NAMES: [&'static str; 4] = ["unreported", "once", "twice", "other"];

    /// Returns the state of blocks that `number` reports cover.
    #[must_use]
    pub fn of_reports(number: usize) -> Self {
        match number {
            0 => State::Unreported,
            1 => State::Once,
            _ => State::Twice,
        }
    }
}

/// A group of blocks that are alike. Numbers are the source's own; 0 stands for none.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Number of blocks and bytes.
    pub amount: Amount,
    /// Usable bytes of one block.
    pub size: u64,
    /// Bytes of one block beyond the requested ones.
    pub slop: u64,
    /// How often the blocks are reported.
    pub state: State,
    /// The call stack that allocated them.
    pub stack: u32,
    /// The thread that allocated them.
    pub thread: u32,
    /// The scope that they were allocated in.
    pub scope: u16,
    /// The reports that cover them.
    pub reports: u32,
    /// Their age in milliseconds, if it was recorded.
    pub age_ms: Option<u64>,
    /// The address of a block that is listed alone.
    pub address: Option<u64>,
}

/// Where items come from, and what their numbers stand for.
pub trait Source {
    /// What blocks are told apart by on an axis; `None` if they have no answer. Asked once of all items that have the same
    /// [`mark`]. Sizes and ages are not asked for.
    fn key(&mut self, axis: &Axis, item: &Item) -> Option<Key>;
}

/// What decides the answer of an item.
pub(super) fn mark(axis: &Axis, item: &Item) -> u64 {
    match axis {
        Axis::AllocationStack { .. } | Axis::Filename | Axis::Crate => item.stack.into(),
        // Where the stack does not tell, the reporter may.
        Axis::Type => u64::from(item.stack) << 32 | u64::from(item.reports),
        Axis::Reporter { .. } | Axis::Field => item.reports.into(),
        Axis::Thread => item.thread.into(),
        Axis::Scope => item.scope.into(),
        Axis::SizeClass => item.size.checked_next_power_of_two().unwrap_or(u64::MAX),
        Axis::Age { edges } => {
            item.age_ms.map_or(u64::MAX, |age| edges.partition_point(|&edge| edge <= age) as u64)
        }
    }
}

/// `33-64`: the sizes up to a power of two.
pub(super) fn size_class(size: u64) -> String {
    match size.checked_next_power_of_two() {
        Some(power @ 0..=2) => power.min(size).to_string(),
        Some(power) => format!("{}-{power}", power / 2 + 1),
        None => format!("{}-{}", (1_u64 << 63) + 1, u64::MAX),
    }
}

/// `under 1 s`, `1 s to 1 min`, `1 h and over`.
pub(super) fn age_group(edges: &[u64], age: u64) -> String {
    let at = edges.partition_point(|&edge| edge <= age);
    let from = at.checked_sub(1).and_then(|before| edges.get(before)).copied().map(time);
    match (from, edges.get(at).copied().map(time)) {
        (None, Some(to)) => format!("under {to}"),
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(from), None) => format!("{from} and over"),
        (None, None) => "any".to_owned(),
    }
}

/// A time in the biggest unit of which it is a whole number.
fn time(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    let unit = UNITS.iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ms} ms"), |(unit, name)| format!("{} {name}", ms / unit))
}
