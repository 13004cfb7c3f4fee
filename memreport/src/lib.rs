//! Says where the bytes of a Rust program's memory are: measure values, report them by path, save them for about:memory.

mod report;
pub mod snapshot;

pub use report::{Kind, Report, Units};
