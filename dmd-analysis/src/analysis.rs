//! From a dump to answers: records grouped by stack, differences, and the texts that show them.
//!
//! Everything here is pure: a [`Dump`](crate::dump::read::Dump) in, a value or a text out.
//!
//! # Examples
//!
//! ```
//! use memreport_analysis::analysis::{self, Grouping, Stacks};
//!
//! let dump = memreport_analysis::read::read_slice(
//!     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
//!          "blockList": [{"req": 100, "slop": 12, "alloc": "A"}],
//!          "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: main (main.rs:1)"}}"##,
//! )?;
//! let mut stacks = Stacks::default();
//! let digest = analysis::digest(&dump, &Grouping::default(), &mut stacks);
//! assert_eq!(digest.heap.usable(), 112);
//! # Ok::<(), memreport_analysis::read::ReadError>(())
//! ```

pub(crate) mod alloc_fns;
pub(crate) mod stacks;
pub(crate) mod record;
pub(crate) mod digest;
pub(crate) mod diff;
pub(crate) mod order;
pub(crate) mod text;
pub(crate) mod clamp;
pub(crate) mod links;
pub(crate) mod referrers;
pub(crate) mod people;
pub(crate) mod types;
pub(crate) mod remedies;
pub(crate) mod sites;
pub(crate) mod explain;
pub(crate) mod by;
pub(crate) mod coverage;
pub(crate) mod json;

pub use by::{Group, group_by, write_groups};
pub use clamp::{ClampError, ClampStats, clamp};
pub use coverage::{Coverage, NoReports, coverage};
pub use diff::{DifferentModes, diff};
pub use digest::{Class, Digest, Section, digest};
pub use explain::{write_explained, write_places, write_summary};
pub use json::{write_explained_json, write_groups_json};
pub use number::{commas, percent};
pub use order::{Filter, SortBy};
pub use people::{shorten, stack_as_read};
pub use record::{Record, Sizes, Totals};
pub use referrers::{Chain, Referred, Referrer, ReferrersError, referrers, write_referrers};
pub use sites::{ExplainOptions, Explained, Place, Site, WrongPlace, explain, pointing_types};
pub use stacks::{Grouping, ListId, StackId, Stacks};
pub use text::{TextOptions, write_text};
pub use types::BlockType;

pub(crate) use crate::number;
pub(crate) use by::{DumpBlocks, field_name, report_names, thread_name};
pub(crate) use people::{Parts, Style, without_allocator, without_library};
pub(crate) use sites::{class, mode};

#[cfg(test)]
mod tests;
