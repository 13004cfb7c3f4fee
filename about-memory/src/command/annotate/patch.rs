//! A patch: the differences of files, each part with the changes in it and their bytes.

use super::edits::{Change, Changes};
use super::forecast::Forecast;
use super::plan::Plan;
use super::source::diff::{self, DiffPart};
use std::path::{Path, PathBuf};

/// The changes of a program's source, and their effect.
#[derive(Debug)]
pub(crate) struct Patch {
    pub(crate) program: String,
    pub(crate) forecast: Forecast,
    pub(crate) changes: Vec<PatchChange>,
    pub(crate) files: Vec<PatchFile>,
    /// Files that changed after the program was built.
    pub(crate) newer: Vec<PathBuf>,
    pub(crate) is_applied: bool,
}

/// A change with its place and its bytes.
#[derive(Debug)]
pub(crate) struct PatchChange {
    pub(crate) change: Change,
    /// The path of its file from the workspace's folder.
    pub(crate) file: String,
    /// The bytes that are classified only with it.
    pub(crate) bytes: i128,
    /// Why it is made, if not for bytes.
    pub(crate) why: Option<String>,
}

/// A file that changes.
#[derive(Debug)]
pub(crate) struct PatchFile {
    pub(crate) file: String,
    pub(crate) path: PathBuf,
    pub(crate) new: String,
    pub(crate) parts: Vec<PatchPart>,
}

/// A part of a difference, with the numbers of the changes in it.
#[derive(Debug)]
pub(crate) struct PatchPart {
    pub(crate) part: DiffPart,
    pub(crate) changes: Vec<usize>,
}

impl Change {
    /// Returns the kind in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Change::Derive(_) => "derive",
            Change::Report(_) => "report",
            Change::Ignore(_) => "ignore",
            Change::Measure(_) => "measure",
            Change::Share(_) => "share",
            Change::Feature(_) => "feature",
            Change::Depend(_) => "depend",
        }
    }

    /// Returns what it is about: a type, a static, a field, a feature or a package.
    pub(crate) fn subject(&self) -> &str {
        match self {
            Change::Derive(name)
            | Change::Report(name)
            | Change::Ignore(name)
            | Change::Measure(name)
            | Change::Share(name)
            | Change::Feature(name)
            | Change::Depend(name) => name,
        }
    }
}

impl Patch {
    /// Puts a patch together. Paths are from `root`.
    pub(crate) fn new(
        program: &str,
        root: &Path,
        (plan, changes): (&Plan, Changes),
        forecast: Forecast,
    ) -> Self {
        let mut files: Vec<PatchFile> = Vec::new();
        for file in changes.files {
            let parts = diff::parts(&file.old, &file.new.text).into_iter().map(|part| {
                let changes = file.new.changes_in(part.new_lines.clone());
                PatchPart { part, changes }
            });
            let shown = file.path.strip_prefix(root).unwrap_or(&file.path);
            files.push(PatchFile {
                file: shown.to_string_lossy().into_owned(),
                parts: parts.collect(),
                new: file.new.text,
                path: file.path,
            });
        }
        files.sort_by(|a, b| a.file.cmp(&b.file));
        let file_of = |number: usize| {
            let is_in =
                |file: &&PatchFile| file.parts.iter().any(|part| part.changes.contains(&number));
            files.iter().find(is_in).map_or_else(String::new, |file| file.file.clone())
        };
        let described = changes.all.into_iter().zip(&forecast.bytes).enumerate();
        let described = described.map(|(number, (change, &bytes))| {
            let why = match &change {
                Change::Ignore(field) => plan.ignored.get(field).cloned(),
                Change::Derive(_) if bytes == 0 => Some("another type contains it".to_owned()),
                Change::Depend(_) => Some("the others need it".to_owned()),
                _ => None,
            };
            PatchChange { file: file_of(number), change, bytes, why }
        });
        let changes = described.collect();
        Self {
            program: program.to_owned(),
            changes,
            files,
            newer: Vec::new(),
            is_applied: false,
            forecast,
        }
    }
}
