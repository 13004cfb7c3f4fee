//! The error of every command: a message for the terminal.

/// A reason that a command stopped.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
