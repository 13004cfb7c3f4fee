//! Censuses of the running program: counts the live heap by the keys of a breakdown.
//!
//! Breakdowns and counting are those of [`memreport_analysis::census`], whose items are re-exported
//! here. [`take_census`] uses only data of the process itself; [`take_symbolicated`] also looks up
//! functions, files, crates and types.
//!
//! For maintainers: `live` counts the blocks of a collection by way of `source`; `symbolicated` and
//! `types` go through a dump in memory.

mod live;
mod source;
mod symbolicated;
mod types;

pub use live::take_census;
pub use memreport_analysis::census::*;
pub use symbolicated::take_symbolicated;
pub use types::{function_names, type_names};
