//! From a dump to answers: records grouped by stack, differences, and the texts that show them.
//!
//! Everything here is pure: a [`Dump`](crate::dump::read::Dump) in, a value or a text out.
//!
//! # Examples
//!
//! ```
//! use dmd::analysis::{self, Grouping, Stacks};
//!
//! let dump = dmd::dump::read::read_slice(
//!     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
//!          "blockList": [{"req": 100, "slop": 12, "alloc": "A"}],
//!          "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: main (main.rs:1)"}}"##,
//! )?;
//! let mut stacks = Stacks::default();
//! let digest = analysis::digest(&dump, &Grouping::default(), &mut stacks);
//! assert_eq!(digest.heap.usable(), 112);
//! # Ok::<(), dmd::dump::read::ReadError>(())
//! ```

mod alloc_fns;
mod stacks;
mod record;
mod digest;
mod diff;
mod order;
mod number;
mod text;
mod clamp;
mod links;
mod referrers;
mod people;
mod types;
mod remedies;
mod sites;
mod explain;
mod by;
mod coverage;
mod json;
pub mod holds;

pub use by::{By, Group, group_by, write_groups};
pub use clamp::{ClampError, ClampStats, clamp};
pub use coverage::{Coverage, NoReports, coverage};
pub use diff::{DifferentModes, diff};
pub use digest::{Class, Digest, Section, digest};
pub use explain::{write_explained, write_places, write_summary};
pub use json::{write_explained_json, write_groups_json};
pub use number::{commas, percent};
pub use order::{Filter, SortBy};
pub use people::shorten;
pub use record::{Record, Sizes, Totals};
pub use referrers::{Chain, Referred, Referrer, ReferrersError, referrers, write_referrers};
pub use sites::{ExplainOptions, Explained, Place, Site, WrongPlace, explain, pointing_types};
pub use stacks::{Grouping, ListId, StackId, Stacks};
pub use text::{TextOptions, write_text};
pub use types::BlockType;

pub(crate) use by::{report_names, thread_name};
pub(crate) use people::{Parts, Style, without_allocator, without_library};
pub(crate) use sites::{class, mode};

#[cfg(test)]
mod tests;
