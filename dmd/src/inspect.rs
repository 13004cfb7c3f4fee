//! The running program seen from inside: censuses and heap profiles of its own blocks.
//!
//! Both take a collection and read it with `memreport-analysis`, so each has a feature.
//!
//! Invariant: memory that they allocate is marked as the tracker's own, so it is in no result.

#[cfg(feature = "census")]
pub mod census;
#[cfg(feature = "pprof")]
pub mod pprof;
