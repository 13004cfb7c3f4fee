//! Measures a running program over its socket.

use super::source::{Measured, Source};
use crate::error::Failure;
use crate::input::live::{self, Connection, LiveError, Target};
use memreport::serve::Request;
use std::time::Duration;

/// The time within which it must send its name.
const NAME_TIMEOUT: Duration = Duration::from_secs(5);

/// A running program.
#[derive(Debug)]
pub(super) struct Program {
    name: String,
    connection: Connection,
}

impl Program {
    /// Connects to a program.
    ///
    /// # Errors
    /// The program does not answer.
    pub(in crate::command::view::page) fn new(
        target: &Target,
        anonymizes: bool,
    ) -> Result<Program, LiveError> {
        let connection = live::choose(target, live::DEFAULT_TIMEOUT)?.anonymize(anonymizes);
        let status = live::choose(target, NAME_TIMEOUT)?.status()?;
        let name = format!("{} (pid {})", status.name, connection.pid());
        Ok(Program { name, connection })
    }
}

impl Source for Program {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn measure(&self, with_dump: bool) -> Result<Measured, Failure> {
        measure(&self.connection, with_dump)
    }

    fn measure_anonymized(&self) -> Result<Measured, Failure> {
        measure(&self.connection.clone().anonymize(true), true)
    }

    fn history(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let parts = match self.connection.ask(&Request::new("history")) {
            // Older servers do not have this command.
            Err(LiveError::Refused(..)) => Vec::new(),
            other => other?,
        };
        Ok(parts.into_iter().map(|part| part.bytes).collect())
    }

    fn minimize(&self) -> Result<(), Failure> {
        self.connection.ask(&Request::new("minimize"))?;
        Ok(())
    }

    fn track(&self, is_on: bool) -> Result<(), Failure> {
        self.connection.ask(&Request::new(if is_on { "track" } else { "untrack" }))?;
        Ok(())
    }
}

fn measure(connection: &Connection, with_dump: bool) -> Result<Measured, Failure> {
    let report = match connection.report(with_dump) {
        // DMD is off or missing.
        Err(LiveError::Refused(..)) if with_dump => connection.report(false),
        other => other,
    }?;
    Ok(Measured { report: report.report, dump: report.dump })
}
