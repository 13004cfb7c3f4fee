//! Censuses of known heaps.

mod breakdowns;
mod examples;
mod sums;
