//! Reads DMD's dumps and recordings, and looks up the functions of their frames.

pub(crate) mod error;
mod source;
mod ahead;
mod reader;
mod args;

pub use args::DumpArgs;
pub use error::DumpError;
pub use reader::DumpReader;
pub(crate) use reader::read_recording;
pub use source::{DumpSource, time_of};
