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

/// The end of zsh's script. zsh loads the file at the first Tab and calls it as a function: without
/// these lines it would define the completion but not answer that Tab.
const FIRST_TAB_OF_ZSH: &str = "
if [[ $funcstack[1] == _about-memory ]]; then
    _clap_dynamic_completer_about_memory \"$@\"
fi
";

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
        if matches!(self.shell, Shell::Zsh) {
            script.extend_from_slice(FIRST_TAB_OF_ZSH.as_bytes());
        }
        // Its control characters are ours.
        std::io::Write::write_all(&mut context.out.machine_bytes(), &script)?;
        Ok(ExitCode::SUCCESS)
    }
}
