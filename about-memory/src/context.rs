//! Holds what all commands share: the writers of answers and notes, and the terminal.

use crate::render::terminal_text::TerminalText;
use std::io::{self, IsTerminal, Write};

/// The surroundings of a command.
pub struct Context<'w> {
    /// The writer of the answer; standard output in the program.
    pub(crate) out: TerminalText<'w>,
    /// The writer of notes; standard error in the program.
    pub(crate) notes: TerminalText<'w>,
    /// The terminal that shows the answer; `None` if a file, a pipe or a test takes it.
    pub(crate) terminal: Option<Terminal>,
}

/// A terminal that shows the answer.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// The width in columns, if the terminal reports one.
    pub columns: Option<usize>,
    /// True unless `NO_COLOR` is set.
    pub allows_colour: bool,
}

impl<'w> Context<'w> {
    /// Makes a context without a terminal.
    pub fn new(out: &'w mut dyn Write, notes: &'w mut dyn Write) -> Self {
        let (out, notes) = (TerminalText::new(out), TerminalText::new(notes));
        Context { out, notes, terminal: None }
    }

    /// Sets the terminal that shows the answer.
    pub fn set_terminal(&mut self, terminal: Option<Terminal>) {
        self.out.set_terminal(terminal.is_some());
        self.terminal = terminal;
    }

    /// Returns the width of the terminal, if there is one.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.terminal?.columns
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

impl Terminal {
    /// Returns the terminal at standard output, if there is one.
    #[must_use]
    pub fn of_stdout() -> Option<Terminal> {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Some(Terminal { columns, allows_colour: !no_colour })
    }
}
