//! Defines flags that several commands share, and parsers of flag values.

pub mod display;
pub mod global;
pub mod blocks;
pub(crate) mod candidates;
pub(crate) mod by;
pub(crate) mod output;
pub(crate) mod parse;

pub use blocks::BlockArgs;
pub use display::DisplayArgs;
pub use global::GlobalArgs;
pub(crate) use output::{Output, refuse_input};
pub(crate) use parse::{hexadecimal, interval, percent, seconds};
