//! Runs `memreport-fleet`.

use std::io;
use std::process::ExitCode;

use about_memory::command::external::{OWN_NAME, PROGRAM};
use about_memory::{AnswerWriter, Failure, TerminalText};
use memreport_fleet::{Cli, is_started_by_about_memory};

fn main() -> ExitCode {
    let mut notes = io::stderr();
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::parse_words(&words) {
        Ok(cli) => cli,
        // Help and the version are our own words, and keep their colours.
        Err(text) if !text.use_stderr() => text.exit(),
        Err(error) => {
            let _ = write!(TerminalText::new(&mut notes), "{error}");
            return Failure::from(error).exit_code();
        }
    };
    let mut stdout = AnswerWriter(io::stdout().lock());
    let mut out = TerminalText::new(&mut stdout);
    let done = cli.run(&mut out, &mut TerminalText::new(&mut notes));
    let done = done.and_then(|()| out.flush().map_err(Failure::from));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_broken_pipe() {
                // There is no other place for the message if standard error is closed.
                let message = failure.with_causes();
                let name = if is_started_by_about_memory(&words) { OWN_NAME } else { PROGRAM };
                let _ = writeln!(TerminalText::new(&mut notes), "{name}: {message}");
            }
            failure.exit_code()
        }
    }
}
