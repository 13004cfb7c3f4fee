//! `about-memory ps`: lists the running programs with an open memreport socket.

use crate::command::flags::seconds;
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::live::{self, Connection, LiveError, Program};
use crate::render;
use crate::render::process::ps::Row;
use crate::report::unclassified::HeapSums;
use clap::Args;
use memreport::serve::protocol::Status;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// `about-memory ps`
#[derive(Debug, Args)]
pub struct PsArgs {
    /// Do not request reports, so that no program measures itself: unclassified memory stays
    /// unknown
    #[arg(long)]
    quick: bool,
    /// Wait at most this long for each program
    #[arg(long, alias = "patience", value_name = "TIME", default_value = "0.25", value_parser = seconds)]
    timeout: Duration,
    /// Look for sockets in this folder only
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print a JSON array: bytes as numbers
    #[arg(long)]
    json: bool,
}

/// The answers of one program.
#[derive(Debug)]
struct Answer {
    pid: u32,
    status: Result<Status, LiveError>,
    /// The sums of its report, or the reason why they are not known.
    measured: Result<HeapSums, String>,
}

impl PsArgs {
    /// Prints the list.
    ///
    /// # Errors
    /// The answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut found = self.folder.as_deref().map_or_else(live::find, live::find_in);
        found.sort_by_key(|program| program.pid);
        let mut rows = Vec::new();
        let mut silent = Vec::new();
        for Answer { pid, status, measured } in ask_all(found, &self) {
            match status {
                Ok(status) => rows.push(Row { pid, status, measured }),
                Err(error) => silent.push(error),
            }
        }
        if self.json {
            render::process::ps::write_json(&rows, &mut context.out.json())?;
        } else if rows.is_empty() {
            writeln!(
                context.out,
                "No running program has an open memreport socket. Call `memreport::serve()` in a program to list it here."
            )?;
        } else {
            render::process::ps::write_text(&rows, &mut context.out)?;
        }
        context.out.flush()?;
        for Row { pid, status, measured } in &rows {
            let measured = measured.as_ref().map_or(&[][..], HeapSums::notes);
            for note in status.saved.iter().chain(measured) {
                writeln!(context.notes, "note: {pid}: {note}")?;
            }
        }
        for error in silent {
            match error {
                // The program has ended, or its socket was removed just now.
                LiveError::NotServing(..) | LiveError::NoProcess(_) => {}
                // A program in a container that shares the folder: its pid here is listed already.
                LiveError::WrongPeer { peer, .. } if rows.iter().any(|row| row.pid == peer) => {}
                error => writeln!(context.notes, "note: {error}")?,
            }
        }
        let is_incomplete = |row: &Row| row.measured.as_ref().is_ok_and(HeapSums::is_incomplete);
        Ok(exit_code(rows.iter().any(is_incomplete)))
    }
}

/// Asks all programs at once: a slow one does not delay the others.
fn ask_all(programs: Vec<Program>, args: &PsArgs) -> Vec<Answer> {
    thread::scope(|scope| {
        let asked: Vec<_> =
            programs.into_iter().map(|program| scope.spawn(|| ask(program, args))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
    })
}

fn ask(program: Program, args: &PsArgs) -> Answer {
    let pid = program.pid;
    let connection = Connection::new(program, args.timeout);
    let status = connection.status();
    let measured = match (&status, args.quick) {
        (Err(_), _) => Err(String::new()),
        (Ok(_), true) => Err("not requested".to_owned()),
        (Ok(_), false) => measure(&connection),
    };
    Answer { pid, status, measured }
}

fn measure(connection: &Connection) -> Result<HeapSums, String> {
    let report = connection.report(false).map_err(|error| match error {
        LiveError::Io(..) | LiveError::Refused(..) => "busy".to_owned(),
        other => other.to_string(),
    })?;
    HeapSums::read(&mut &report.report[..]).map_err(|error| error.to_string())
}
