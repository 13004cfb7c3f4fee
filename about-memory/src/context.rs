//! Holds what all commands share: the writers of answers and notes, and the terminal.

#[cfg(unix)]
mod console;
#[cfg(not(unix))]
#[path = "context/windows_console.rs"]
mod console;
mod pager;
mod start;

pub use start::{Words, start};

use crate::render::terminal_text::TerminalText;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

/// The surroundings of a command.
pub struct Context<'w> {
    /// The writer of the answer; standard output in the program.
    pub(crate) out: TerminalText<'w>,
    /// The writer of notes; standard error in the program.
    pub(crate) notes: TerminalText<'w>,
    /// The terminal that shows the answer; `None` if a file, a pipe or a test takes it.
    pub(crate) terminal: Option<Terminal>,
    colour: Colour,
}

/// A terminal that shows the answer.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// The width in columns, if the terminal reports one.
    pub columns: Option<usize>,
    /// True if it acts on the escape sequences of colours.
    pub has_colours: bool,
}

/// The condition for colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// By the terminal and the environment.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The wishes of the user for all output of a command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surface {
    /// The condition for colours.
    pub colour: Colour,
    /// True if notes and progress are not wanted.
    pub is_quiet: bool,
    /// True if a terminal may show the answer through a pager.
    pub may_page: bool,
}

impl<'w> Context<'w> {
    /// Makes a context without a terminal.
    pub fn new(out: &'w mut dyn Write, notes: &'w mut dyn Write) -> Self {
        let (out, notes) = (TerminalText::new(out), TerminalText::new(notes));
        Context { out, notes, terminal: None, colour: Colour::Never }
    }

    /// Sets the terminal that shows the answer.
    pub fn set_terminal(&mut self, terminal: Option<Terminal>) {
        self.out.set_terminal(terminal.is_some());
        self.terminal = terminal;
    }

    /// Sets the condition for colours, which is never at first.
    pub fn set_colour(&mut self, colour: Colour) {
        self.colour = colour;
    }

    /// Returns whether the answer has colours.
    pub(crate) fn is_coloured(&self) -> bool {
        match self.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                is_coloured(self.terminal.is_some_and(|found| found.has_colours), |name| {
                    std::env::var_os(name)
                })
            }
        }
    }

    /// Returns the width of the terminal, if there is one.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.terminal?.columns
    }
}

/// Returns whether text has colours by default: on a terminal, unless `NO_COLOR` is set, or if
/// `CLICOLOR_FORCE` is set.
fn is_coloured(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_zero = |name| variable(name).is_some_and(|value| value == "0");
    let is_forced = is_set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE");
    let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
    !is_set("NO_COLOR") && (is_forced || (is_terminal && !is_zero("CLICOLOR") && !is_dumb))
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
        let columns = console::columns(&stdout).filter(|&columns| columns > 0);
        Some(Terminal { columns, has_colours: console::has_colours() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_and_obey_the_environment() {
        type Variables = &'static [(&'static str, &'static str)];
        let table: [(bool, Variables, bool); 9] = [
            (true, &[], true),
            (false, &[], false),
            (true, &[("NO_COLOR", "1")], false),
            (true, &[("NO_COLOR", "")], true),
            (false, &[("CLICOLOR_FORCE", "1")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (true, &[("CLICOLOR", "0")], false),
            (true, &[("TERM", "dumb")], false),
        ];
        for (is_terminal, variables, expected) in table {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(is_coloured(is_terminal, variable), expected, "{variables:?}");
        }
    }
}
