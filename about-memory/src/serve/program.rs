//! A running program as the page measures it: over the socket at which it serves.

use super::source::{Measured, Source};
use crate::live::{self, Connection, LiveError};
use crate::show::Failure;
use memreport::serve::Request;
use std::time::Duration;

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to say its name.
const GLANCE: Duration = Duration::from_secs(1);

/// A program that was running when it was found.
#[derive(Debug)]
pub(super) struct Program {
    name: String,
    connection: Connection,
}

impl Program {
    pub(super) fn new(program: live::Program) -> Self {
        let pid = program.pid;
        let status = Connection::new(program.clone(), GLANCE).status();
        let name = status.map_or_else(
            |_| format!("process {pid}"),
            |status| format!("{} (pid {pid})", status.name),
        );
        Program { name, connection: Connection::new(program, PATIENCE) }
    }
}

impl Source for Program {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn measure(&self) -> Result<Measured, Failure> {
        let report = match self.connection.report(true) {
            // DMD sleeps, or is not there.
            Err(LiveError::Refused(..)) => self.connection.report(false),
            other => other,
        }?;
        Ok(Measured { report: report.report, dump: report.dump })
    }

    fn minimize(&self) -> Result<(), Failure> {
        self.connection.ask(&Request::new("minimize"))?;
        Ok(())
    }
}
