//! `about-memory track PROGRAM`: turns DMD on or off in a running program, or changes its options.

use super::call::print_answer;
use crate::command::flags::candidates;
use crate::context::Context;
use crate::error::Failure;
use crate::input::live::Target;
use clap::Args;
use memreport::serve::Request;
use std::process::ExitCode;

/// `about-memory track`
#[derive(Debug, Args)]
pub struct TrackArgs {
    /// A running program, by pid or name
    #[arg(value_name = "PID|NAME", add = candidates::programs())]
    program: Target,
    /// Track no new blocks from now on
    #[arg(long, conflicts_with = "options")]
    stop: bool,
    /// The options of DMD, as in `$DMD` [default: track everything, with full stacks]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    options: Vec<String>,
}

impl TrackArgs {
    /// Prints the answer.
    ///
    /// # Errors
    /// The program cannot be asked or refuses, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let request = match (self.stop, &self.options[..]) {
            (true, _) => Request::new("untrack"),
            (false, []) => Request::new("track"),
            (false, words) => Request::new("track").with("options", words.join(" ")),
        };
        print_answer(&self.program, &request, context)
    }
}
