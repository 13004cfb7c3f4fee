//! `about-memory minimize PROGRAM`: asks a running program to release caches and unused heap.

use super::call::print_answer;
use crate::command::flags::candidates;
use crate::context::Context;
use crate::error::Failure;
use crate::input::live::Target;
use clap::Args;
use memreport::serve::Request;
use std::process::ExitCode;

/// `about-memory minimize`
#[derive(Debug, Args)]
pub struct MinimizeArgs {
    /// A running program, by pid or name
    #[arg(value_name = "PID|NAME", add = candidates::programs())]
    program: Target,
}

impl MinimizeArgs {
    /// Prints the answer.
    ///
    /// # Errors
    /// The program cannot be asked or refuses, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        print_answer(&self.program, &Request::new("minimize"), context)
    }
}
