//! Suggestions: the change to the code that covers blocks or corrects reports, in one line each.
//!
//! A suggestion names the type, field or static if the dump contains it. One that is not certain
//! begins with "perhaps".

mod features;
mod program;
mod unreported;
mod wrong;

pub use features::FEATURES;
pub(crate) use program::{ProgramFacts, readable_static};
pub(crate) use unreported::{BlockHolder, UnreportedCauses};
