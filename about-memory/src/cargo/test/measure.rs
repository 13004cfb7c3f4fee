//! Runs one test under DMD, and finds the blocks that it leaves behind.

use super::super::launch::{manifest_folder, with};
use super::harness::Binary;
use crate::command::launch::error::describe_end;
use crate::command::launch::run::{self, RunArgs, Surroundings};
use crate::error::Failure;
use crate::input::dump::DumpReader;
use crate::input::folder::working_directory;
use clap::{Args, FromArgMatches};
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::retention::{self, Left};
use std::fs::File;
use std::io::{Read, Seek};
use std::sync::Arc;

/// A test that has run.
#[derive(Debug)]
pub(super) struct Measured {
    /// The end of its process, if it failed.
    pub(super) end: Option<String>,
    /// The blocks that it left behind, or the reason why they are unknown.
    pub(super) left: Result<Left, String>,
    /// Its output.
    pub(super) output: Vec<u8>,
}

/// The state that tests share: functions are looked up once for all.
pub(super) struct Measurer {
    reader: DumpReader,
    options: ExplainOptions,
    run: RunArgs,
}

impl Measurer {
    pub(super) fn new(top: usize) -> Result<Self, Failure> {
        let command = RunArgs::augment_args(clap::Command::new("run"));
        let matches = command.try_get_matches_from(["run", "test"])?;
        let mut options = ExplainOptions::default();
        options.top = top;
        options.root = working_directory();
        let run = RunArgs::from_arg_matches(&matches)?;
        Ok(Measurer { reader: DumpReader::default(), options, run })
    }

    /// Runs a test to its end, and reads its last dump.
    pub(super) fn measure(&mut self, binary: &Binary, test: &str) -> Result<Measured, Failure> {
        let mut output = tempfile::tempfile()?;
        let words = [test, "--exact", "--test-threads=1"].map(Into::into);
        let args = RunArgs {
            command: with(binary.built.file.clone(), words),
            surroundings: Surroundings {
                dmd: Some("--mode=scan"),
                folder: Some(binary.folder.clone()),
                environment: manifest_folder(&binary.folder),
                output: Some(Arc::new(output.try_clone()?)),
            },
            ..self.run.clone()
        };
        let ran = run::run(&args)?;
        let end = describe_end(ran.status).map(|end| match ran.status.code() {
            // The exit status of Rust's test harness.
            Some(101) => "FAILED".to_owned(),
            _ => format!("FAILED: {}", end.sentence),
        });
        // The processes that it starts are other programs, with snapshots of their own.
        let last = ran.snapshots.iter().rev().find(|snapshot| snapshot.is_at_exit());
        let left = match last {
            Some(snapshot) => self.left(&snapshot.dump),
            None => Err(ran.notes.last().cloned().unwrap_or_default()),
        };
        let output = if end.is_some() || left.is_err() { read(&mut output)? } else { Vec::new() };
        Ok(Measured { end, left, output })
    }

    fn left(&mut self, dump: &std::path::Path) -> Result<Left, String> {
        let mut dump = DumpReader::load(dump).map_err(|error| error.to_string())?;
        self.reader.symbolicate(&mut dump);
        retention::left(&mut dump, &self.options).map_err(|error| error.to_string())
    }
}

fn read(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
