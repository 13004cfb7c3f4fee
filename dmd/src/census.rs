//! Censuses of the running program: the live heap counted by what a breakdown names.
//!
//! The language of breakdowns and the counting are those of [`memreport_analysis::census`], whose items
//! are re-exported here. [`take_census`] counts blocks by what the process itself contains;
//! [`take_symbolised`] also looks up functions, files, crates and types.

mod live;
mod symbolised;
mod types;

pub use live::take_census;
pub use memreport_analysis::census::*;
pub use symbolised::take_symbolised;
pub use types::type_names;
