//! Writes results as text, JSON, Markdown and HTML.

pub mod colour;
pub mod terminal_text;
pub mod show;
pub mod resident;
pub(crate) mod check;
pub(crate) mod census;
pub(crate) mod coverage;
pub(crate) mod owners;
pub(crate) mod recording;
pub(crate) mod process;
#[cfg(all(unix, feature = "top"))]
pub(crate) mod terminal;
pub(crate) mod page;
