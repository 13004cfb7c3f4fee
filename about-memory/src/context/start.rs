//! Starts a program: hands the terminal and the parsed words to a command, and prints its error.

use super::pager::Pager;
use super::{Context, Surface, Terminal};
use crate::error::{AnswerWriter, Failure};
use crate::input::progress;
use crate::render::terminal_text::TerminalText;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// The parsed words of a command line.
pub trait Words {
    /// Returns the wishes of the user for all output.
    fn surface(&self) -> Surface;

    /// Runs the command.
    ///
    /// # Errors
    /// The command fails.
    fn run_command(self, context: &mut Context<'_>) -> Result<ExitCode, Failure>;
}

/// Runs the command that the words stand for. Returns the exit status of the process.
pub fn start(name: &str, words: Result<impl Words, clap::Error>) -> ExitCode {
    let words = match words {
        Ok(words) => words,
        // Help and the version are our own words, and keep their colours.
        Err(text) if !text.use_stderr() => text.exit(),
        Err(error) => {
            let _ = write!(TerminalText::new(&mut io::stderr()), "{error}");
            return Failure::from(error).exit_code();
        }
    };
    let surface = words.surface();
    let terminal = Terminal::of_stdout();
    if !surface.is_quiet && io::stderr().is_terminal() {
        progress::enable();
    }
    let pages = surface.may_page && terminal.is_some() && io::stdin().is_terminal();
    if !pages {
        let notes: &mut dyn Write =
            if surface.is_quiet { &mut io::sink() } else { &mut io::stderr() };
        let done = run(words, (&mut io::stdout().lock(), notes), terminal);
        return end(name, done);
    }
    let mut pager = Pager::default();
    // The pager has the terminal: notes follow when it ends.
    let mut notes = Vec::new();
    let done = run(words, (&mut pager, &mut notes), terminal);
    pager.wait();
    if !surface.is_quiet {
        // There is no other place for them if standard error is closed.
        let _ = io::stderr().write_all(&notes);
    }
    end(name, done)
}

fn run(
    words: impl Words,
    (out, notes): (&mut dyn Write, &mut dyn Write),
    terminal: Option<Terminal>,
) -> Result<ExitCode, Failure> {
    let surface = words.surface();
    let mut out = BufWriter::with_capacity(1 << 16, AnswerWriter(out));
    let mut context = Context::new(&mut out, notes);
    context.set_terminal(terminal);
    context.set_colour(surface.colour);
    let done = words.run_command(&mut context);
    let done = done.and_then(|code| out.flush().map(|()| code).map_err(Failure::from));
    // After a failure, do not try again to write the rest of the buffer.
    let _ = out.into_parts();
    done
}

/// Prints the message of a failure. Returns the exit status.
fn end(name: &str, done: Result<ExitCode, Failure>) -> ExitCode {
    done.unwrap_or_else(|failure| {
        if !failure.is_broken_pipe() {
            // There is no other place for the message if standard error is closed.
            let message = failure.with_causes();
            let _ = writeln!(TerminalText::new(&mut io::stderr()), "{name}: {message}");
        }
        failure.exit_code()
    })
}
