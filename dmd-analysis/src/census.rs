//! Censuses: counts of the live heap by a breakdown, one axis within the other.
//!
//! A [`Breakdown`] is in the words of SpiderMonkey's `Debugger.Memory.prototype.takeCensus`: every
//! block goes down one path of it and is counted at the end. The groups of an axis always add up to
//! the blocks that the axis splits.
//!
//! [`of_dump`] counts the blocks of a dump file, [`of_reachable`] those of a scan that are
//! reachable. The [`engine`] counts those of any other source; the tracker uses it for the running
//! program.
//!
//! # Examples
//!
//! ```
//! use memreport_analysis::census::{Axis, Breakdown, Split};
//!
//! let built = Split::by(Axis::reporter()).then(Split::by(Axis::Thread));
//! let read: Breakdown = r#"{"by":"reporter","then":{"by":"thread"}}"#.parse()?;
//! assert_eq!(Breakdown::from(built), read);
//!
//! let refused = r#"{"by":"reporter","then":{"by":"thred"}}"#.parse::<Breakdown>();
//! let why = refused.unwrap_err().to_string();
//! assert!(why.starts_with("`then`: cannot group by `thred`; known are count, bucket, "), "{why}");
//! # Ok::<(), memreport_analysis::census::BreakdownError>(())
//! ```

mod breakdown;
mod amount;
mod item;
mod node;
mod count;
mod file;
mod diff;
mod write;

pub use crate::axis::{Axis, AxisError, DEFAULT_EDGES, Key, ReportState, StackCut};
pub use amount::{Amount, BlockSize};
pub use breakdown::{Breakdown, BreakdownError, Bucket, Count, Split, StateSplit};
pub use diff::DifferentBreakdowns;
pub use file::{FileOptions, ReachableCensus, columns, of_dump, of_reachable};
pub use node::{Blocks, Bucketed, Census, Counted, Group, Node};

/// The counting engine, for sources of blocks other than dump files.
pub mod engine {
    pub use super::count::Counting;
    pub use super::item::{Item, owned_by};
    pub use crate::axis::{Attributes, distinct, thread_text};
}

#[cfg(test)]
mod tests;
