//! `about-memory completions SHELL`: prints a script for the shell.

use crate::context::Context;
use crate::error::Failure;
use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Powershell, Zsh};
use std::process::ExitCode;

/// `about-memory completions`
#[derive(Debug, Args)]
#[command(after_help = "\
The script asks the program for the words: commands, options and their values, files, and running programs by name and number. \
Write it to the place that the shell reads at its start.")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

/// The variable by which the script asks the program.
const VARIABLE: &str = "COMPLETE";

impl CompletionsArgs {
    /// Prints the script.
    ///
    /// # Errors
    /// The answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let completer: &dyn EnvCompleter = match self.shell {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
            Shell::Powershell => &Powershell,
        };
        let name = "about-memory";
        let mut script = Vec::new();
        completer.write_registration(VARIABLE, name, name, name, &mut script)?;
        // Its control characters are ours.
        std::io::Write::write_all(&mut context.out.machine_bytes(), &script)?;
        Ok(ExitCode::SUCCESS)
    }
}
