//! Defines the command line: a file for each command.

mod agent;
mod dataset_arg;
mod export;
mod query;
mod resource_args;
mod symbols;

use std::io::Write;

use about_memory::Failure;
use clap::{Parser, Subcommand};

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

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
