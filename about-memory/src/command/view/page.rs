//! Builds or serves the page that shows reports in a browser.

pub(crate) mod snapshot;
pub(crate) mod findings;
pub(crate) mod recording;
pub mod build;
pub mod serve;
