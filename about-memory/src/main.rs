//! Runs `about-memory`.

use about_memory::command::external;
use about_memory::{AnswerWriter, Cli, Context, Failure, Terminal, TerminalText};
use clap::Parser;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut notes = io::stderr();
    if let Some(words) = external::export_words(std::env::args_os()) {
        let failure = external::run(words).err().unwrap_or_else(|| Failure::from("not started"));
        let _ = writeln!(TerminalText::new(&mut notes), "about-memory: {failure}");
        return failure.exit_code();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and the version are our own words, and keep their colours.
        Err(text) if !text.use_stderr() => text.exit(),
        Err(error) => {
            let _ = write!(TerminalText::new(&mut notes), "{error}");
            return Failure::from(error).exit_code();
        }
    };
    let mut out = BufWriter::with_capacity(1 << 16, AnswerWriter(io::stdout().lock()));
    let mut context = Context::new(&mut out, &mut notes);
    context.set_terminal(Terminal::of_stdout());
    let done = cli.run(&mut context);
    let done = done.and_then(|code| out.flush().map(|()| code).map_err(Failure::from));
    // After a failure, do not try again to write the rest of the buffer.
    let _ = out.into_parts();
    done.unwrap_or_else(|failure| {
        if !failure.is_broken_pipe() {
            // There is no other place for the message if standard error is closed.
            let message = failure.with_causes();
            let _ = writeln!(TerminalText::new(&mut notes), "about-memory: {message}");
        }
        failure.exit_code()
    })
}
