//! Builds, opens or serves the page that shows reports in a browser.

pub(crate) mod snapshot;
pub(crate) mod findings;
pub(crate) mod recording;
mod source;
mod program;
pub mod build;
pub mod open;
#[cfg(feature = "serve")]
pub mod serve;

pub use source::{Measured, Source};
