//! `about-memory man`: writes manual pages.

use crate::command::flags::Output;
use crate::context::Context;
use crate::error::Failure;
use clap::Args;
use clap_mangen::Man;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `about-memory man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command to this folder: `about-memory-heap-tree.1`
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print the page of this command: `heap tree`
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Vec<String>,
}

impl ManArgs {
    /// Prints a page, or writes all.
    ///
    /// # Errors
    /// There is no such command, or a file cannot be written.
    pub fn run(
        self,
        mut command: clap::Command,
        context: &mut Context<'_>,
    ) -> Result<ExitCode, Failure> {
        command.build();
        if let Some(folder) = &self.output {
            std::fs::create_dir_all(folder)?;
            let count = write_all(&command, command.get_name(), folder)?;
            writeln!(context.out, "wrote {count} pages to {}", folder.display())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut found = &command;
        for word in &self.command {
            found = found
                .find_subcommand(word)
                .ok_or_else(|| format!("there is no command `{}`", self.command.join(" ")))?;
        }
        let name =
            self.command.iter().fold("about-memory".to_owned(), |name, word| name + "-" + word);
        context.out.machine_bytes().write_all(&page(found, &name)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the pages of a command and of those below it. Returns their number.
fn write_all(command: &clap::Command, name: &str, folder: &Path) -> Result<usize, Failure> {
    let mut output = Output::create(&folder.join(format!("{name}.1")))?;
    output.write_all(&page(command, name)?)?;
    output.keep()?;
    let mut count = 1;
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            count += write_all(below, &format!("{name}-{}", below.get_name()), folder)?;
        }
    }
    Ok(count)
}

/// Returns the page of a command.
fn page(command: &clap::Command, name: &str) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone().name(name.to_owned())).render(&mut page)?;
    Ok(page)
}
