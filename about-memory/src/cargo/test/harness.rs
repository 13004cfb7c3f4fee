//! A test binary, and the tests that its harness lists.

use super::super::messages::Built;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A test binary.
#[derive(Debug)]
pub(super) struct Binary {
    pub(super) built: Built,
    /// The folder of its package, in which its tests run.
    pub(super) folder: PathBuf,
}

impl Binary {
    /// Returns its name for people: its target and its source file.
    pub(super) fn name(&self) -> String {
        let source = self.built.source.strip_prefix(&self.folder).unwrap_or(&self.built.source);
        format!("{} ({})", self.built.target, source.display())
    }

    /// Returns the names of the tests that are not ignored.
    ///
    /// # Errors
    ///
    /// The binary has another harness than Rust's, which does not list them.
    pub(super) fn tests(&self, filter: Option<&str>) -> Result<Vec<String>, String> {
        let all = self.list(filter, &[])?;
        let ignored = self.list(filter, &["--ignored"])?;
        Ok(all.into_iter().filter(|test| !ignored.contains(test)).collect())
    }

    fn list(&self, filter: Option<&str>, words: &[&str]) -> Result<Vec<String>, String> {
        let mut command = Command::new(&self.built.file);
        command.args(filter).args(["--list", "--format", "terse"]).args(words);
        command.current_dir(&self.folder).stdin(Stdio::null());
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err("it has no test harness of Rust's".to_owned());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}
