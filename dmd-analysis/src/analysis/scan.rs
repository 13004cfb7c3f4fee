//! Scan dumps: the contents of blocks as pointers, and which block points at which.

pub(crate) mod clamp;
pub(crate) mod links;
mod referrers;
mod referrers_text;

pub use clamp::{ClampError, ClampStats, clamp};
pub use referrers::{BlockReferrers, Chain, Referrer, ReferrersError, referrers};
pub use referrers_text::write_referrers;
