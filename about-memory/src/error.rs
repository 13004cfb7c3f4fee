//! Defines the error of commands, and the exit status that belongs to it.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::{fmt, io};

/// An error that ended a command.
///
/// `?` turns every error, and every sentence, into a `Failure`. It does not implement [`Error`]
/// itself: that would forbid the conversion.
pub struct Failure(Box<dyn Error + Send + Sync>);

/// The exit status of a command whose answer is incomplete, as the answer states.
const INCOMPLETE: u8 = 3;

/// Returns the exit status of a command that has succeeded: 0, or 3 if the answer is incomplete.
#[must_use]
pub(crate) fn exit_code(is_incomplete: bool) -> ExitCode {
    if is_incomplete { ExitCode::from(INCOMPLETE) } else { ExitCode::SUCCESS }
}

/// A failure to write the answer, as the source of an [`io::Error`].
///
/// It tells a closed standard output from the other pipes of a command.
#[derive(Debug)]
struct AnswerError(io::Error);

impl AnswerError {
    /// Marks an error, unless it is marked already.
    fn mark(error: io::Error) -> io::Error {
        if Self::of(&error).is_some() {
            return error;
        }
        io::Error::new(error.kind(), AnswerError(error))
    }

    fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer cannot be written: {}", self.0)
    }
}

impl Error for AnswerError {}

/// The writer of the answer. It marks its errors, so that errors of other files differ.
#[derive(Debug)]
pub struct AnswerWriter<W>(pub W);

impl<W: Write> Write for AnswerWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(AnswerError::mark)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(AnswerError::mark)
    }
}

impl Failure {
    /// Wraps an error of writing the answer to a file.
    pub(crate) fn answer(error: io::Error) -> Self {
        Failure::from(AnswerError::mark(error))
    }

    /// Returns the error as a value of this type, if it is one.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }

    /// Returns whether the reader of the answer closed the pipe, as `head` does. This is no
    /// failure.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        let error = self.0.downcast_ref().and_then(AnswerError::of);
        error.is_some_and(|AnswerError(error)| error.kind() == io::ErrorKind::BrokenPipe)
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
        let mut source = self.0.source();
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
        Failure(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_no_failure() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let error = AnswerWriter(writer).write(b"text").expect_err("nobody reads");
        assert!(Failure::from(error).is_broken_pipe());
        assert!(Failure::answer(broken()).is_broken_pipe());
        // Another pipe than standard output.
        assert!(!Failure::from(broken()).is_broken_pipe());
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
