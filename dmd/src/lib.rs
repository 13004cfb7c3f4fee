//! The dark matter detector.

pub mod dump;
#[cfg(feature = "analysis")]
pub mod symbols;
#[cfg(feature = "analysis")]
pub mod analysis;
