//! Saved reports: Firefox's memory report file, version 1, with fields of our own where it allows them.

pub mod read;
