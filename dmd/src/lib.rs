//! The dark matter detector.

pub mod dump;
#[cfg(feature = "analysis")]
pub mod analysis;
