//! Defines the command line: a file for each command.

mod agent;
mod dataset_arg;
mod export;
mod query;
mod resource_args;
mod symbols;

use std::ffi::OsString;
use std::io::Write;

use about_memory::Failure;
use about_memory::command::external::OWN_NAME;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Memory of a fleet: snapshots of many processes as Parquet files, an agent that ships them, and
/// questions about them.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write reports, dumps and recordings as Parquet files or as OpenTelemetry profiles
    Export(export::ExportArgs),
    /// Ship snapshots of the served programs of this host to a store
    Agent(Box<agent::AgentArgs>),
    /// Answer a question about a dataset with an engine that is installed
    Query(query::QueryArgs),
    /// Look up the functions of a dataset's stacks, once for each build
    Symbols(symbols::SymbolsArgs),
    /// Print the columns of all tables as Markdown
    Schema,
}

impl Cli {
    /// Returns the command of these words; the first is the program's name. The help for a program
    /// that was started by `about-memory` has the names of its commands.
    ///
    /// # Errors
    /// The words are wrong, or ask for the help.
    pub fn parse_words(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = Cli::command();
        if is_started_by_about_memory(words) {
            command = command.bin_name(OWN_NAME).mut_subcommand("query", |query| {
                query.override_usage("about-memory fleet [OPTIONS] <QUESTION> <DATASET>")
            });
        }
        Cli::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// Runs the command.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(self, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Export(args) => args.run(notes),
            Command::Agent(args) => args.run(notes),
            Command::Query(args) => args.run(out, notes),
            Command::Symbols(args) => args.run(notes),
            Command::Schema => Ok(write!(out, "{}", crate::schema::markdown())?),
        }
    }
}

/// Returns whether `about-memory` started this program, by the program's name among its words.
#[must_use]
pub fn is_started_by_about_memory(words: &[OsString]) -> bool {
    words.first().is_some_and(|name| name == OWN_NAME)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_help_has_the_names_of_who_started_the_program() {
        let table = [
            ("memreport-fleet query --help", "Usage: memreport-fleet query [OPTIONS] <QUESTION>"),
            ("about-memory query --help", "Usage: about-memory fleet [OPTIONS] <QUESTION>"),
            ("about-memory agent --help", "Usage: about-memory agent [OPTIONS]"),
        ];
        for (words, usage) in table {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let help = Cli::parse_words(&words).unwrap_err().to_string();
            assert!(help.contains(usage), "{help}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
