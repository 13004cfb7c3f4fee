//! Shows, compares and explains memory reports.

mod present;
pub mod show;
pub mod diff;
pub mod page;
pub mod explain_rss;
pub mod recording;
pub mod tree;
