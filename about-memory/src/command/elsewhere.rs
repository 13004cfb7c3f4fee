//! The commands that only Unix has. Elsewhere they are out of sight, take any arguments, and fail
//! with a sentence that names what to do instead.

use super::inspect::InspectArgs;
use crate::context::Context;
use crate::error::Failure;
use crate::input::live::NO_SOCKETS;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// A paragraph for the help about what this system lacks.
pub const SCOPE: Option<&str> = Some(
    "On this system, files are shown: reports that a program saves by `memreport::snapshot().save(…)`, and dumps and recordings \
     of other systems. Programs are not started, tracked or asked.",
);

/// The sentence of commands that start a program.
pub(crate) const NO_TRACKER: &str = "DMD does not track programs on this system; measure values in the program, save a report by \
     `memreport::snapshot().save(\"heap.json.gz\")`, and show it: about-memory heap.json.gz";

/// The sentence of commands that memreport-fleet answers.
const NO_FLEET: &str =
    "memreport-fleet does not run on this system; copy the reports to a Linux machine";

/// Arguments of a command that is not there.
#[derive(Debug, Args)]
pub struct Absent {
    /// Any words.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// A command of the group `Run`.
#[derive(Debug, Subcommand)]
pub enum LaunchCommand {
    /// Not on this system
    #[command(hide = true, disable_help_flag = true, alias = "record", alias = "preload")]
    Run(Absent),
}

/// A command of the group `Process`.
#[derive(Debug, Subcommand)]
pub enum ProcessCommand {
    /// Not on this system
    #[command(
        hide = true,
        disable_help_flag = true,
        aliases = ["top", "live", "snapshot", "minimize", "track", "attach", "log", "call", "ask"]
    )]
    Ps(Absent),
    /// Print the heap in a core file of a Linux process
    Inspect(InspectArgs),
}

/// A command of the group `Fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Not on this system
    #[command(hide = true, disable_help_flag = true, aliases = ["agent", "fleet-export"])]
    Fleet(Absent),
}

impl LaunchCommand {
    /// Fails.
    ///
    /// # Errors
    /// Always: this system has no tracker.
    pub fn run(self, _: &mut Context<'_>) -> Result<ExitCode, Failure> {
        Err(NO_TRACKER.into())
    }
}

impl ProcessCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The command fails; all but `inspect` do.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self {
            ProcessCommand::Ps(_) => Err(NO_SOCKETS.into()),
            ProcessCommand::Inspect(args) => args.run(context),
        }
    }
}

impl FleetCommand {
    /// Fails.
    ///
    /// # Errors
    /// Always: this system has no memreport-fleet.
    pub fn run(self, _: &mut Context<'_>) -> Result<ExitCode, Failure> {
        Err(NO_FLEET.into())
    }
}
