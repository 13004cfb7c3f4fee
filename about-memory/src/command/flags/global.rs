//! Defines the flags that every command has.

use crate::context::{Colour, Surface};
use clap::{Args, ValueEnum};

/// Flags that every command has.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct GlobalArgs {
    /// When to use colours; by default on a terminal, unless `$NO_COLOR` is set
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = HEADING
    )]
    pub color: Color,
    /// Print no notes and no progress on standard error, only errors
    #[arg(short, long, global = true, help_heading = HEADING)]
    pub quiet: bool,
    /// Print long answers directly to a terminal instead of through `$PAGER`
    #[arg(long, global = true, help_heading = HEADING)]
    pub no_pager: bool,
}

/// The heading of these flags in the help.
const HEADING: &str = "Options of every command";

/// The condition for colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal without `NO_COLOR`, or if `CLICOLOR_FORCE` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl GlobalArgs {
    /// Returns what the flags mean for the output of a command.
    #[must_use]
    pub fn surface(self, may_page: bool) -> Surface {
        let colour = match self.color {
            Color::Auto => Colour::Auto,
            Color::Always => Colour::Always,
            Color::Never => Colour::Never,
        };
        Surface { colour, is_quiet: self.quiet, may_page: may_page && !self.no_pager }
    }
}
