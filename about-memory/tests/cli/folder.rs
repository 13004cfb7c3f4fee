//! A temporary folder of files, in which the program runs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder that is removed with the value.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Creates an empty folder.
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    /// Adds a file. Returns the folder, for the next one.
    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(name, content);
        self
    }

    /// Writes a file. Returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the program, to be run in the folder.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        command.current_dir(self.0.path());
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    /// Runs the program, which must succeed. Returns what it prints.
    #[track_caller]
    pub(crate) fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the program, which must succeed and print JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(args)).unwrap()
    }
}

/// Shows these reports as text, or with two lists of them their difference.
pub(crate) fn show(files: &[&str], args: &[&str]) -> String {
    let folder = Folder::new();
    let mut words = Vec::new();
    words.extend((files.len() > 1).then_some("diff"));
    for (name, reports) in ["one.json", "two.json"].into_iter().zip(files) {
        folder.write(
            name,
            format!(r#"{{"version": 1, "hasMozMallocUsableSize": true, "reports": [{reports}]}}"#),
        );
        words.push(name);
    }
    folder.text(&[&words, args].concat())
}
