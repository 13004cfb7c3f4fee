//! Censuses of known heaps.

mod asked;
mod told;
mod sums;
mod takes;
