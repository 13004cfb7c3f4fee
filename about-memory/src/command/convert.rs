//! Writes reports and dumps in other formats.

pub mod export;
pub mod metrics;
pub mod symbolicate;
