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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_binary_are_those_that_are_not_ignored() {
        let binary = |file: &str| {
            let (file, source) = (PathBuf::from(file), PathBuf::from("/shop/src/lib.rs"));
            let built = Built {
                package: "shop".into(),
                target: "shop".into(),
                kind: "lib".into(),
                is_test: true,
                source,
                file,
            };
            Binary { built, folder: PathBuf::from("/") }
        };
        let own = std::env::current_exe().unwrap();
        let own = binary(own.to_str().unwrap());
        assert_eq!(own.name(), "shop (shop/src/lib.rs)");
        let name =
            "cargo::test::harness::tests::the_tests_of_a_binary_are_those_that_are_not_ignored";
        assert_eq!(own.tests(Some(name)), Ok(vec![name.to_owned()]));
        assert_eq!(own.tests(Some("no test is called so")), Ok(Vec::new()));
        assert!(binary("/bin/false").tests(None).is_err());
    }
}
