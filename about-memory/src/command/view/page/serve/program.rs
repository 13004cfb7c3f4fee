//! A running program as the page measures it: over the socket at which it serves.

use super::source::{Measured, Source};
use crate::error::Failure;
use crate::input::live::{self, Connection, LiveError, Target};
use memreport::serve::Request;
use std::time::Duration;

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to say its name.
const GLANCE: Duration = Duration::from_secs(5);

/// A program that was running when it was found.
#[derive(Debug)]
pub(super) struct Program {
    name: String,
    connection: Connection,
}

impl Program {
    /// The program that is meant.
    ///
    /// # Errors
    /// When there is none that can be asked.
    pub(super) fn new(target: &Target) -> Result<Program, LiveError> {
        let connection = live::choose(target, PATIENCE)?;
        let status = live::choose(target, GLANCE)?.status()?;
        let name = format!("{} (pid {})", status.name, connection.pid());
        Ok(Program { name, connection })
    }
}

impl Source for Program {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn measure(&self, with_dump: bool) -> Result<Measured, Failure> {
        let report = match self.connection.report(with_dump) {
            // DMD sleeps, or is not there.
            Err(LiveError::Refused(..)) if with_dump => self.connection.report(false),
            other => other,
        }?;
        Ok(Measured { report: report.report, dump: report.dump })
    }

    fn history(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let parts = match self.connection.ask(&Request::new("history")) {
            // A server of an older version does not know the word.
            Err(LiveError::Refused(..)) => Vec::new(),
            other => other?,
        };
        Ok(parts.into_iter().map(|part| part.bytes).collect())
    }

    fn minimize(&self) -> Result<(), Failure> {
        self.connection.ask(&Request::new("minimize"))?;
        Ok(())
    }
}
