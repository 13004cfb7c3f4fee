//! Shows a long answer on a terminal through the user's pager.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A pager, which starts with the first text. Without one, the text goes to standard output.
#[derive(Debug, Default)]
pub(super) struct Pager {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    NoText,
    Running(Child, ChildStdin),
    /// The user wants no pager, or it cannot be started.
    None,
}

impl Pager {
    /// Waits until the user leaves the pager.
    pub(super) fn wait(self) {
        if let State::Running(mut child, input) = self.state {
            drop(input);
            // A pager that is gone has nothing more to show.
            let _ = child.wait();
        }
    }

    /// Returns the writer of the text.
    fn target(&mut self) -> Box<dyn Write + '_> {
        if matches!(self.state, State::NoText) {
            self.state = start().map_or(State::None, |(child, input)| State::Running(child, input));
        }
        match &mut self.state {
            State::Running(_, input) => Box::new(input),
            State::NoText | State::None => Box::new(io::stdout().lock()),
        }
    }
}

/// Starts the pager of `$PAGER`, or `less`.
fn start() -> Option<(Child, ChildStdin)> {
    let variable = std::env::var_os("PAGER");
    let words = match variable {
        None if is_on_path("less") => "less".into(),
        Some(words) if !words.is_empty() && words != "cat" => words,
        _ => return None,
    };
    let mut command = Command::new("sh");
    command.arg("-c").arg(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Ends at once if all fits, keeps colours, and leaves the text on the screen.
        command.env("LESS", "FRX");
    }
    let mut child = command.spawn().ok()?;
    let input = child.stdin.take()?;
    Some((child, input))
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.target().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::NoText => Ok(()),
            _ => self.target().flush(),
        }
    }
}

fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
