//! `about-memory page serve [FILE…|PID…]`: serves the page on this machine, with new snapshots of
//! running programs.

mod store;
mod answer;
mod gate;
mod http;
mod server;

use super::recording::PageRecording;
use super::snapshot::PageSnapshot;
use crate::context::Context;
use crate::error::Failure;
use crate::input::live::{self, Target};
use crate::input::{InputArgs, open};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

pub use server::Server;

/// `about-memory page serve`
#[derive(Debug, Args)]
pub struct PageServeArgs {
    /// Memory reports to show, the oldest first, recordings, and pids of running programs to
    /// measure; by default, all programs of `about-memory ps`
    #[arg(value_name = "FILE|PID")]
    pub targets: Vec<PathBuf>,
    /// The port to listen on [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Flags of the reader of reports.
    #[command(flatten)]
    pub input: InputArgs,
}

impl PageServeArgs {
    /// Prints the address, and serves the page until it is interrupted.
    ///
    /// # Errors
    /// A file cannot be shown, or the port is taken.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut server = Server::bind(self.port)?;
        for path in &self.targets {
            match open::running(path) {
                Some(target) => server.add_program(&target)?,
                None if PageRecording::is_at(path) => {
                    server.add_recording(PageRecording::of_file(path, &mut context.notes)?);
                }
                None => server
                    .add_snapshot(PageSnapshot::of_report_or_dump(path, self.input.options())?),
            }
        }
        if self.targets.is_empty() {
            for found in live::find() {
                // It may have ended since it was found.
                if let Err(error) = server.add_program(&Target::Pid(found.pid)) {
                    writeln!(context.notes, "about-memory: {error}")?;
                }
            }
            if server.has_no_source() {
                return Err(live::NOTHING_TO_SERVE.into());
            }
        }
        for note in server.measure_all() {
            writeln!(context.notes, "about-memory: {note}")?;
        }
        writeln!(context.out, "{}", server.address())?;
        context.out.flush()?;
        server.run()?;
        Ok(ExitCode::SUCCESS)
    }
}
