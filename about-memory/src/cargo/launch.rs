//! `cargo memreport run`, `record` and `bench`: build a program, and hand it to the commands of
//! `about-memory`.

use super::build::{BuildArgs, CARGO, ProgramArgs};
use super::error::CargoError;
use super::messages::Built;
use super::workspace::Workspace;
use crate::command::launch::record::{RecordArgs, RecordOptions};
use crate::command::launch::run::{RunArgs, RunOptions, Surroundings};
use crate::context::Context;
use crate::error::Failure;
use clap::Args;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `cargo memreport run`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo memreport run
  cargo memreport run --release --bin shop --every 2 -- --port 80
  cargo memreport run --at-peak         the blocks of the moment with the biggest heap
  cargo memreport run --fail-above 5    exit status 1 if more than 5 % is unreported")]
pub(crate) struct CargoRunArgs {
    /// The program.
    #[command(flatten)]
    program: ProgramArgs,
    /// Flags of the run.
    #[command(flatten)]
    options: RunOptions,
    /// Flags of cargo.
    #[command(flatten)]
    build: BuildArgs,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// `cargo memreport record`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo memreport record
  DMD=--mode=live cargo memreport record -- input.txt    every block, not a sample
  about-memory recording recording.gz
  about-memory heap diff recording.gz --at peak")]
pub(crate) struct CargoRecordArgs {
    /// The program.
    #[command(flatten)]
    program: ProgramArgs,
    /// Flags of the recording.
    #[command(flatten)]
    options: RecordOptions,
    /// Flags of cargo.
    #[command(flatten)]
    build: BuildArgs,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// `cargo memreport bench`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo memreport bench --at-peak
  cargo memreport bench --bench parse -- wide")]
pub(crate) struct BenchArgs {
    /// The benchmark, if not all
    #[arg(long = "bench", value_name = "NAME", help_heading = CARGO)]
    benches: Vec<OsString>,
    /// Flags of the run.
    #[command(flatten)]
    options: RunOptions,
    /// Flags of cargo.
    #[command(flatten)]
    build: BuildArgs,
    /// Arguments of the benchmarks
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl CargoRunArgs {
    /// Builds and runs the program, and shows its last snapshot.
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let workspace = Workspace::read(&self.build)?;
        let chosen = self.program.choose(&workspace, self.build.package.as_deref())?;
        let file = chosen.build(&self.build, &workspace)?;
        let surroundings = Surroundings {
            environment: manifest_folder(chosen.package.folder()),
            ..Surroundings::default()
        };
        let command = with(file, self.arguments);
        RunArgs { options: self.options, command, surroundings }.run(context)
    }
}

impl CargoRecordArgs {
    /// Builds and records the program, and prints a summary.
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let workspace = Workspace::read(&self.build)?;
        let chosen = self.program.choose(&workspace, self.build.package.as_deref())?;
        let command = with(chosen.build(&self.build, &workspace)?, self.arguments);
        RecordArgs { options: self.options, process: None, length: None, command }.run(context)
    }
}

impl BenchArgs {
    /// Builds and runs the benchmarks one after another. Returns the status of the first that
    /// fails.
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let workspace = Workspace::read(&self.build)?;
        let packages = workspace.chosen(self.build.package.as_deref())?;
        let mut words = vec![OsStr::new("--no-run")];
        for bench in &self.benches {
            words.extend([OsStr::new("--bench"), bench]);
        }
        if self.benches.is_empty() {
            words.push(OsStr::new("--benches"));
        }
        let built = self.build.build(("bench", "bench"), &workspace, &packages, &words)?;
        // Without a benchmark of its own, a library or program has nothing to measure.
        let benches: Vec<Built> = built.into_iter().filter(|built| built.kind == "bench").collect();
        if benches.is_empty() {
            return Err(CargoError::NoProgram("benchmark (`benches/NAME.rs`)".into()).into());
        }
        let mut first = ExitCode::SUCCESS;
        for bench in benches {
            writeln!(context.out, "Benchmark {}\n", bench.target)?;
            let folder = workspace.of_id(&bench.package).map(|package| package.folder().to_owned());
            let surroundings = Surroundings {
                environment: folder.as_deref().map(manifest_folder).unwrap_or_default(),
                folder,
                ..Surroundings::default()
            };
            let arguments = [OsString::from("--bench")].into_iter().chain(self.arguments.clone());
            let command = with(bench.file, arguments);
            let options = self.options.clone();
            let code = RunArgs { options, command, surroundings }.run(context)?;
            if first == ExitCode::SUCCESS {
                first = code;
            }
        }
        Ok(first)
    }
}

/// Returns a program with its arguments.
pub(super) fn with(file: PathBuf, arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    [file.into_os_string()].into_iter().chain(arguments).collect()
}

/// Returns the variable by which `cargo run` and `cargo test` name the package's folder.
pub(super) fn manifest_folder(folder: &Path) -> Vec<(&'static str, OsString)> {
    vec![("CARGO_MANIFEST_DIR", folder.into())]
}
