//! Censuses: the live heap counted by what is asked, one question within the other.
//!
//! The questions are a [`Breakdown`], in the words of SpiderMonkey's `Debugger.Memory.prototype.takeCensus`: every block goes
//! down one way of it and is counted where it ends. What a question finds adds up to what it was asked of, always.
//!
//! [`take_census`] counts the running program, which goes on meanwhile; with the feature `analysis`, `of_dump` counts what a
//! file has. Both count the blocks of a [dump](crate::Dump): those that were born before a moment and live after it.
//!
//! # Examples
//!
//! ```
//! use dmd::census::{Axis, Breakdown, Split};
//!
//! let built = Split::by(Axis::Reporter { depth: None }).then(Split::by(Axis::Thread));
//! let read: Breakdown = r#"{"by":"reporter","then":{"by":"thread"}}"#.parse()?;
//! assert_eq!(Breakdown::from(built), read);
//!
//! let refused = r#"{"by":"reporter","then":{"by":"thred"}}"#.parse::<Breakdown>();
//! let why = refused.unwrap_err().to_string();
//! assert!(why.starts_with("`then`: nothing is told apart by `thred`; known are count, bucket, "), "{why}");
//! # Ok::<(), dmd::census::BreakdownError>(())
//! ```

mod breakdown;
mod error;
mod parse;
mod words;
mod item;
mod count;
mod node;
mod diff;
mod write;
mod live;
#[cfg(feature = "analysis")]
mod file;

pub use breakdown::{Axis, Breakdown, Bucket, CoarseType, Count, DEFAULT_EDGES, Split};
pub use error::BreakdownError;
#[cfg(feature = "analysis")]
pub use file::{FileOptions, of_dump, take_symbolised};
pub use item::{Amount, State};
pub use live::take_census;
pub use node::{Blocks, Bucketed, Census, Counted, Group, Key, Node};

#[cfg(test)]
mod tests;
