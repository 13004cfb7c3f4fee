//! Answers about a dump: records, differences, unreported places, coverage, groups, and the texts
//! that print them.
//!
//! Everything here is pure: a [`Dump`](crate::read::Dump) in, a value or a text out.
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

pub(crate) mod options;
pub(crate) mod frames;
pub(crate) mod records;
pub(crate) mod scan;
pub(crate) mod suggest;
pub(crate) mod explain;
pub(crate) mod by;
pub(crate) mod coverage;
pub(crate) mod json;

pub use by::{Group, group_by, write_groups};
pub use coverage::{Coverage, NoReports, Suggestion, coverage, coverage_of};
pub use explain::{
    ClassPlaces, Explained, Place, WrongPlace, explain, pointing_types, write_explained,
    write_places, write_summary,
};
pub use frames::{BlockType, Crates, Site, shorten, stack_as_read};
pub use json::{write_explained_json, write_groups_json};
pub use number::{commas, counted, percent};
pub use options::ExplainOptions;
pub(crate) use records::AddressPlace;
pub use records::{
    Addresses, Class, DifferentModes, Digest, Filter, Grouping, ListId, Record, Section, SizeCount,
    Sizes, SortBy, StackId, Stacks, TextOptions, Totals, UNTRACKED, diff, digest, write_text,
};
pub use scan::{
    BlockReferrers, Chain, ClampError, ClampStats, Referrer, ReferrersError, clamp, referrers,
    write_referrers,
};
pub use suggest::FEATURES;

pub(crate) use crate::number;
pub(crate) use by::{DumpBlocks, field_name, report_names, thread_name};
pub(crate) use frames::{Parts, Style, without_allocator, without_library};
pub(crate) use records::{class, mode};

#[cfg(test)]
mod tests;
