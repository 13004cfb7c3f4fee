//! Censuses of known heaps.

mod asked;
mod told;
#[cfg(feature = "analysis")]
mod sums;
#[cfg(feature = "analysis")]
mod takes;
