//! Collections: live blocks merged with what reporters claim.

pub(crate) mod age;
pub(crate) mod claimants;
pub(crate) mod claim_words;
pub(crate) mod claims;
pub(crate) mod packed_claims;
pub(crate) mod holders;
pub(crate) mod summary;
pub(crate) mod balance;
pub(crate) mod scan;
pub(crate) mod findings;
pub(crate) mod collection;

pub use collection::Tracking;
pub use findings::Dump;
pub use summary::{Estimate, Sampled, Sum, Summary};
