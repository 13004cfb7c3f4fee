//! Censuses: the live heap counted by what is asked, one question within the other.
//!
//! The questions are a [`Breakdown`], in the words of SpiderMonkey's `Debugger.Memory.prototype.takeCensus`: every block goes
//! down one way of it and is counted where it ends. What a question finds adds up to what it was asked of, always.
//!
//! [`of_dump`] counts the blocks of a dump that was read from a file. The [`engine`] counts those of any
//! other source; the tracker uses it for the running program.
//!
//! # Examples
//!
//! ```
//! use memreport_analysis::census::{Axis, Breakdown, Split};
//!
//! let built = Split::by(Axis::Reporter { depth: None }).then(Split::by(Axis::Thread));
//! let read: Breakdown = r#"{"by":"reporter","then":{"by":"thread"}}"#.parse()?;
//! assert_eq!(Breakdown::from(built), read);
//!
//! let refused = r#"{"by":"reporter","then":{"by":"thred"}}"#.parse::<Breakdown>();
//! let why = refused.unwrap_err().to_string();
//! assert!(why.starts_with("`then`: nothing is told apart by `thred`; known are count, bucket, "), "{why}");
//! # Ok::<(), memreport_analysis::census::BreakdownError>(())
//! ```

mod breakdown;
mod error;
mod parse;
mod words;
mod item;
mod keys;
mod count;
mod node;
mod diff;
mod write;
mod file;

pub use breakdown::{Axis, Breakdown, Bucket, CoarseType, Count, DEFAULT_EDGES, Split};
pub use error::BreakdownError;
pub use file::{FileOptions, of_dump};
pub use item::{Amount, State};
pub use node::{Blocks, Bucketed, Census, Counted, Group, Key, Node};

/// The counting engine, for sources of blocks other than dump files.
pub mod engine {
    pub use super::count::Counting;
    pub use super::item::{Item, Source};
    pub use super::keys::{fields, named_thread, owned_by, reporters};
}

#[cfg(test)]
mod tests;
