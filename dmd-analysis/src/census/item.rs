//! Items of a census: groups of blocks that are alike, from any source.

use super::amount::Amount;
use crate::axis::{Axis, ReportState, age_place};

/// A group of blocks that are alike. The source assigns the numbers; 0 stands for none.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// The number of blocks and their bytes.
    pub amount: Amount,
    /// The usable bytes of one block.
    pub size: u64,
    /// The bytes of one block beyond the requested ones.
    pub slop: u64,
    /// The state of the blocks: unreported, once reported, or twice.
    pub state: ReportState,
    /// The call stack that allocated them.
    pub stack: u32,
    /// The thread that allocated them.
    pub thread: u32,
    /// The scope that they were allocated in.
    pub scope: u16,
    /// The reports that count them.
    pub reports: u32,
    /// Their age in milliseconds, if it was recorded.
    pub age_ms: Option<u64>,
    /// The address of a block that is listed alone.
    pub address: Option<u64>,
}

/// Returns the number that decides the key of an item on an axis. Items with the same number have
/// the same key.
pub(super) fn deciding_number(axis: &Axis, item: &Item) -> u64 {
    match axis {
        Axis::Stack(_) | Axis::Site | Axis::File | Axis::Crate => item.stack.into(),
        // Where the stack does not contain the type, the reporter may.
        Axis::Type => u64::from(item.stack) << 32 | u64::from(item.reports),
        Axis::Reporter { .. } | Axis::Field => item.reports.into(),
        Axis::State => item.state as u64,
        Axis::Thread => item.thread.into(),
        Axis::Scope => item.scope.into(),
        Axis::Size => item.size,
        Axis::SizeClass => item.size.checked_next_power_of_two().unwrap_or(u64::MAX),
        Axis::Age { edges } => item.age_ms.map_or(u64::MAX, |age| age_place(edges, age) as u64),
    }
}

/// Returns the type of a block whose stack does not contain it, by the type that reports it.
#[must_use]
pub fn owned_by(owner: &str) -> String {
    format!("owned by {owner}")
}
