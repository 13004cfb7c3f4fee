//! Measures a running program over its socket.

use super::source::{Measured, Source};
use crate::error::Failure;
use crate::input::live::{self, Connection, LiveError, Target};
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
        let name = live::choose(target, NAME_TIMEOUT)?.name()?;
        let name = format!("{name} (pid {})", connection.pid());
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
        match self.connection.history() {
            // Older servers do not have this command.
            Err(error) if error.is_refusal() => Ok(Vec::new()),
            other => Ok(other?),
        }
    }

    fn minimize(&self) -> Result<(), Failure> {
        Ok(self.connection.minimize()?)
    }

    fn track(&self, is_on: bool) -> Result<(), Failure> {
        Ok(self.connection.track(is_on)?)
    }
}

fn measure(connection: &Connection, with_dump: bool) -> Result<Measured, Failure> {
    let report = match connection.report(with_dump) {
        // DMD is off or missing.
        Err(error) if with_dump && error.is_refusal() => connection.report(false),
        other => other,
    }?;
    Ok(Measured { report: report.report, dump: report.dump })
}
