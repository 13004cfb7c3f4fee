//! Shows memory reports and dumps as text.

pub mod dmd;
