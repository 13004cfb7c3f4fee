//! Starts a program to measure or record it.

pub mod error;
pub mod preload;
pub(crate) mod program;
pub mod tracking;
pub mod run;
pub mod record;

use crate::context::Context;
use crate::error::Failure;
use clap::Subcommand;
use preload::PreloadArgs;
use record::RecordArgs;
use run::RunArgs;
use std::process::ExitCode;

/// A command of the group `Run`.
#[derive(Debug, Subcommand)]
pub enum LaunchCommand {
    /// Run a program and show its memory and dark matter
    Run(RunArgs),
    /// Record the allocations of a program over time
    Record(RecordArgs),
    /// Write the library that tracks programs without DMD
    Preload(PreloadArgs),
}

impl LaunchCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self {
            LaunchCommand::Run(args) => args.run(context),
            LaunchCommand::Record(args) => args.run(context),
            LaunchCommand::Preload(args) => args.run(context),
        }
    }
}
