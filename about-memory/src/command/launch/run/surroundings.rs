//! Holds the surroundings of a program that another command than `run` starts.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The folder, environment and output of a program; by default those of this process.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The value of `$DMD` if the user has not set it.
    pub dmd: Option<&'static str>,
    /// The working directory.
    pub folder: Option<PathBuf>,
    /// Environment variables to set.
    pub environment: Vec<(&'static str, OsString)>,
    /// The file that takes standard output and standard error.
    pub output: Option<Arc<File>>,
}

impl Surroundings {
    /// Sets the folder, the environment and the output of a command. With `as_json`, standard
    /// output is for the answer alone.
    pub(super) fn apply(&self, command: &mut Command, as_json: bool) -> std::io::Result<()> {
        if as_json {
            command.stdout(std::io::stderr());
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(file) = &self.output {
            command.stdout(file.try_clone()?).stderr(file.try_clone()?).stdin(Stdio::null());
        }
        Ok(())
    }
}
