//! Runs `about-memory`.

use about_memory::{AnswerWriter, Cli, Context, Failure, Terminal};
use clap::Parser;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = BufWriter::with_capacity(1 << 16, AnswerWriter(io::stdout().lock()));
    let mut notes = io::stderr();
    let mut context = Context { out: &mut out, notes: &mut notes, terminal: Terminal::of_stdout() };
    let done = cli.run(&mut context);
    let done = done.and_then(|code| out.flush().map(|()| code).map_err(Failure::from));
    // After a failure, do not try again to write the rest of the buffer.
    let _ = out.into_parts();
    done.unwrap_or_else(|failure| {
        if !failure.is_broken_pipe() {
            // There is no other place for the message if standard error is closed.
            let _ = writeln!(io::stderr(), "about-memory: {}", failure.with_causes());
        }
        failure.exit_code()
    })
}
