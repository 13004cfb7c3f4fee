//! Commands of another program, `memreport-fleet`: `agent`, `fleet`, and `export` to its formats.
//!
//! It is a package of its own, because it needs a hundred crates that nobody else does. As cargo
//! and git do, this program starts it: the one beside itself, or else the one on the path.

use crate::context::Context;
use crate::error::Failure;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The name of the other program.
pub const PROGRAM: &str = "memreport-fleet";

/// The name that the other program is started by.
pub const OWN_NAME: &str = "about-memory";

/// A command of the group `Fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Ship snapshots of this host's programs (memreport-fleet)
    #[command(disable_help_flag = true)]
    Agent(ExternalArgs),
    /// Answer a question about a fleet (memreport-fleet)
    #[command(disable_help_flag = true)]
    Fleet(ExternalArgs),
    /// `export` to a format of the other program
    #[command(hide = true, disable_help_flag = true)]
    FleetExport(ExternalArgs),
}

impl FleetCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The other program is not installed.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self {
            FleetCommand::Agent(args) => args.run("agent", context),
            FleetCommand::Fleet(args) => args.run("query", context),
            FleetCommand::FleetExport(args) => args.run("export", context),
        }
    }
}

/// Arguments that the other program reads.
#[derive(Debug, Args)]
pub struct ExternalArgs {
    /// The arguments; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

impl ExternalArgs {
    /// Runs a command of the other program with these arguments.
    ///
    /// # Errors
    /// It is not installed.
    pub fn run(self, command: &str, _: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if command == "query" && self.words.is_empty() {
            return Err("name a question and a dataset: `about-memory fleet growth DATASET`; \
                        `about-memory fleet --help` lists the questions"
                .into());
        }
        run([OsString::from(command)].into_iter().chain(self.words))
    }
}

/// Becomes the other program.
///
/// # Errors
/// It is not installed, or cannot be started.
pub fn run(words: impl IntoIterator<Item = OsString>) -> Result<ExitCode, Failure> {
    let program = beside().unwrap_or_else(|| PROGRAM.into());
    // By its name, the other program tells that its help and messages are for this one's users.
    // Returns only if it fails.
    let error = Command::new(&program).arg0(OWN_NAME).args(words).exec();
    Err(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "this command is of the program {PROGRAM}, which is neither beside this one nor on the \
             path; install it: cargo install {PROGRAM}"
        ),
        _ => format!("{} cannot be started: {error}", program.display()),
    }
    .into())
}

/// Returns the other program beside this one, if it is there.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.is_file().then_some(path)
}
