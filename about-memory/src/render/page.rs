//! Writes the page that shows reports in a browser.

pub(crate) mod reports;
pub(crate) mod document;
