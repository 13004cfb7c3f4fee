//! Talks to running programs over their sockets.

pub mod ps;
#[cfg(feature = "top")]
pub mod top;
pub mod snapshot;
pub mod minimize;
pub mod track;
pub mod attach;
pub mod call;
pub mod log;

use crate::command::inspect::InspectArgs;
use crate::context::Context;
use crate::error::Failure;
use attach::AttachArgs;
use call::CallArgs;
use clap::Subcommand;
use log::LogArgs;
use minimize::MinimizeArgs;
use ps::PsArgs;
use snapshot::SnapshotArgs;
use std::process::ExitCode;
#[cfg(feature = "top")]
use top::TopArgs;
use track::TrackArgs;

/// A command of the group `Process`.
#[derive(Debug, Subcommand)]
pub enum ProcessCommand {
    /// List running programs with an open memreport socket
    Ps(PsArgs),
    /// Watch the report of a running program in a terminal
    #[cfg(feature = "top")]
    #[command(alias = "live")]
    Top(TopArgs),
    /// Save reports and dumps of running programs
    Snapshot(SnapshotArgs),
    /// Ask a program to release caches and unused heap
    Minimize(MinimizeArgs),
    /// Turn heap tracking on or off in a running program
    Track(TrackArgs),
    /// Track a running program that has no DMD
    Attach(AttachArgs),
    /// Print the heap of a running process that is not prepared
    Inspect(InspectArgs),
    /// Print the allocations of a running program
    Log(LogArgs),
    /// Send a command to a running program
    #[command(alias = "ask")]
    Call(CallArgs),
}

impl ProcessCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self {
            ProcessCommand::Ps(args) => args.run(context),
            #[cfg(feature = "top")]
            ProcessCommand::Top(args) => args.run(context),
            ProcessCommand::Snapshot(args) => args.run(context),
            ProcessCommand::Minimize(args) => args.run(context),
            ProcessCommand::Track(args) => args.run(context),
            ProcessCommand::Attach(args) => args.run(context),
            ProcessCommand::Inspect(args) => args.run(context),
            ProcessCommand::Log(args) => args.run(context),
            ProcessCommand::Call(args) => args.run(context),
        }
    }
}
