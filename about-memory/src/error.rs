//! Defines the error of commands, and the exit status that belongs to it.

use std::error::Error;
use std::process::ExitCode;
use std::{fmt, io};

/// An error that ended a command.
///
/// `?` turns every error, and every sentence, into a `Failure`. It does not implement [`Error`]
/// itself: that would forbid the conversion.
pub struct Failure(Cause);

enum Cause {
    /// The answer could not be written.
    Answer(io::Error),
    /// Everything else.
    Other(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// Wraps an error of the writer of the answer.
    pub(crate) fn answer(error: io::Error) -> Self {
        Failure(Cause::Answer(error))
    }

    /// Returns the error as a value of this type, if it is one.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        match &self.0 {
            Cause::Answer(_) => None,
            Cause::Other(error) => error.downcast_ref(),
        }
    }

    /// Returns whether the reader of the output closed the pipe, as `head` does. This is no
    /// failure.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        let error = match &self.0 {
            Cause::Answer(error) => Some(error),
            Cause::Other(error) => error.downcast_ref(),
        };
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns the exit status of the process: 2, or 0 after a broken pipe.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if self.is_broken_pipe() { ExitCode::SUCCESS } else { ExitCode::from(2) }
    }

    /// Returns the message with the messages of all causes, in one line.
    #[must_use]
    pub fn with_causes(&self) -> String {
        let mut message = self.to_string();
        let mut source = match &self.0 {
            Cause::Answer(_) => None,
            Cause::Other(error) => error.source(),
        };
        while let Some(cause) = source {
            // Some messages contain the message of the cause.
            if !message.contains(&cause.to_string()) {
                message = format!("{message}: {cause}");
            }
            source = cause.source();
        }
        message
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(Cause::Other(error.into()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Answer(error) => write!(f, "the answer cannot be written: {error}"),
            Cause::Other(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Answer(error) => error.fmt(f),
            Cause::Other(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_no_failure() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::from(broken()).is_broken_pipe());
        assert!(Failure::answer(broken()).is_broken_pipe());
        assert!(!Failure::from("no such block").is_broken_pipe());
        assert!(!Failure::from(io::Error::other("the disk is full")).is_broken_pipe());
    }

    #[test]
    fn causes_follow_the_message_once() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(
            Failure::answer(full).with_causes(),
            "the answer cannot be written: no storage space"
        );
        assert_eq!(Failure::from("no such block").with_causes(), "no such block");
    }
}
