//! The running program that a word of the command line stands for.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// A running program to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The process with this pid.
    Pid(u32),
    /// The only program of this name.
    Name(String),
    /// The program that listens at this socket.
    Socket(PathBuf),
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text.contains('/') {
            return Ok(Target::Socket(text.into()));
        }
        Ok(text.parse().map_or_else(|_| Target::Name(text.to_owned()), Target::Pid))
    }
}
