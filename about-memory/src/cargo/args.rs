//! Defines the command line of `cargo memreport`.

use super::init::InitArgs;
use super::launch::{BenchArgs, CargoRecordArgs, CargoRunArgs};
use super::test::TestArgs;
use crate::command::annotate::{AnnotateOptions, HELP as ANNOTATE_HELP};
use crate::command::flags::GlobalArgs;
use crate::context::{Context, Surface, Words};
use crate::error::Failure;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Builds a program with cargo, runs it under DMD, and shows its memory.
///
/// It builds with debug information, without a change to the profiles in Cargo.toml, and enables
/// the feature `memreport` of the package if there is one; `cargo memreport init` adds it. A
/// program without it is tracked as well, by a library that replaces its `malloc`.
#[derive(Debug, Parser)]
#[command(name = "cargo memreport", bin_name = "cargo memreport", version)]
#[command(after_help = "\
Examples:
  cargo memreport init                  prepare the package in this folder
  cargo memreport run                   build and run its program, and show its memory
  cargo memreport run --release --bin shop -- --port 80
  cargo memreport test                  show what each test leaves behind
  cargo memreport record -- input.txt   record all allocations of a run
  cargo memreport annotate heap.dmd.json.gz    print the patch that reports what is unreported

`about-memory` shows the files that these commands write, and running programs.")]
pub struct CargoCli {
    /// The command.
    #[command(subcommand)]
    command: CargoCommand,
    /// Flags of every command.
    #[command(flatten)]
    global: GlobalArgs,
}

/// A command of `cargo memreport`.
#[derive(Debug, Subcommand)]
enum CargoCommand {
    /// Build and run a program, and show its memory
    Run(CargoRunArgs),
    /// Run each test by itself, and show what it leaves behind
    Test(TestArgs),
    /// Build and run benchmarks, and show their memory
    Bench(BenchArgs),
    /// Build and run a program, and record its allocations
    Record(CargoRecordArgs),
    /// Add memreport to a package: allocator and a reporter
    Init(InitArgs),
    /// Change the source so that the heap of a dump is reported
    Annotate(CargoAnnotateArgs),
}

/// `cargo memreport annotate`
#[derive(Debug, Args)]
#[command(after_help = format!("{ANNOTATE_HELP}\n\nExamples:\n  \
cargo memreport annotate heap.dmd.json.gz             print the patch\n  \
cargo memreport annotate heap.dmd.json.gz --apply     change the files"))]
struct CargoAnnotateArgs {
    /// The options.
    #[command(flatten)]
    options: AnnotateOptions,
}

impl CargoCli {
    /// Parses the words of the command line. Cargo passes `memreport` as the first argument.
    ///
    /// # Errors
    ///
    /// The words are wrong, or ask for the help.
    pub fn parse_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut words: Vec<OsString> = words.into_iter().collect();
        if words.get(1).is_some_and(|word| word == "memreport") {
            words.remove(1);
        }
        Self::try_parse_from(words)
    }

    /// Runs the command.
    ///
    /// # Errors
    ///
    /// The command fails.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self.command {
            CargoCommand::Run(args) => args.run(context),
            CargoCommand::Test(args) => args.run(context),
            CargoCommand::Bench(args) => args.run(context),
            CargoCommand::Record(args) => args.run(context),
            CargoCommand::Init(args) => args.run(context),
            CargoCommand::Annotate(args) => args.options.run(context),
        }
    }
}

impl Words for CargoCli {
    fn surface(&self) -> Surface {
        self.global.surface(false)
    }

    fn run_command(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        self.run(context)
    }
}
