//! The source files that the rules read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::comments::{Comment, comments};

/// The crates whose sizes and rooms are checked.
pub(crate) const CRATES: [&str; 7] = [
    "memreport",
    "memreport-derive",
    "dmd",
    "dmd-analysis",
    "about-memory",
    "memreport-fleet",
    "xtask",
];

/// One Rust source file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the workspace's folder, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) comments: Vec<Comment>,
}

impl Source {
    fn new(path: String, text: String) -> Self {
        let comments = comments(&text);
        Source { path, text, comments }
    }

    /// Returns whether the file holds only tests: `tests.rs`, or a file in a folder `tests`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

/// All sources of the workspace, and the documents with rules of their own.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// Sorted by path.
    pub(crate) sources: Vec<Source>,
    documents: BTreeMap<String, String>,
}

impl Workspace {
    /// Reads every Rust file below a folder, except build outputs and expected compile errors.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut paths = Vec::new();
        walk(root, &mut paths)?;
        let mut workspace = Workspace::default();
        for path in paths {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            workspace.sources.push(Source::new(name, fs::read_to_string(&path)?));
        }
        workspace.sources.sort_by(|one, other| one.path.cmp(&other.path));
        for name in ["README.md", "ARCHITECTURE.md"] {
            let text = fs::read_to_string(root.join(name))?;
            workspace.documents.insert(name.to_owned(), text);
        }
        Ok(workspace)
    }

    /// Returns the text of a document in the workspace's folder.
    pub(crate) fn document(&self, name: &str) -> &str {
        self.documents.get(name).map_or("", String::as_str)
    }

    /// Returns the files below a folder.
    pub(crate) fn below(&self, folder: &str) -> impl Iterator<Item = &Source> {
        let prefix = format!("{folder}/");
        self.sources.iter().filter(move |source| source.path.starts_with(&prefix))
    }

    /// Returns a made-up workspace, for tests of the rules. Names that end in `.md` are documents.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut workspace = Workspace::default();
        for (path, text) in files {
            let (path, text) = ((*path).to_owned(), (*text).to_owned());
            if path.ends_with(".md") {
                workspace.documents.insert(path, text);
            } else {
                workspace.sources.push(Source::new(path, text));
            }
        }
        workspace
    }
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Files below `ui` are inputs that must not compile; some have no first line of ours.
            if name != "target" && name != "ui" && !name.starts_with('.') {
                walk(&path, found)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_tests_are_told_apart() {
        for (path, expected) in [
            ("dmd/src/table.rs", false),
            ("dmd/src/table/tests.rs", true),
            ("dmd/src/table/tests/cases.rs", true),
            ("dmd/tests/proof.rs", true),
            ("dmd/src/contests.rs", false),
        ] {
            assert_eq!(Source::new(path.to_owned(), String::new()).is_test(), expected, "{path}");
        }
    }
}
