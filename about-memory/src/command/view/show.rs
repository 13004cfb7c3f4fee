//! `about-memory FILE…`: shows memory reports.

use super::diff::DiffArgs;
use super::present::{self, Presented};
use super::tree;
use crate::command::flags::{DisplayArgs, candidates};
use crate::command::heap::tree::HeapTreeArgs;
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::kind::FileKind;
use crate::input::open;
use crate::input::{InputArgs, folder};
use crate::report::page::file_builder::Opened;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory FILE…`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Memory reports, plain or gzipped, or pids or names of running programs; `-` is standard
    /// input. Several are shown as one report of all their processes; two of one process are
    /// compared. A dump or a recording is shown as by `heap tree`, of a folder its last report
    #[arg(required = true, value_name = "FILE|PID|NAME", add = candidates::programs_and_files())]
    pub files: Vec<PathBuf>,
    /// Flags of the display.
    #[command(flatten)]
    pub display: DisplayArgs,
    /// Flags of the reader of reports.
    #[command(flatten)]
    pub input: InputArgs,
}

impl ShowArgs {
    /// Shows the files.
    ///
    /// # Errors
    /// A file cannot be shown, or the answer cannot be written.
    pub fn run(mut self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        for path in self.files.iter_mut().filter(|path| path.is_dir()) {
            let found = folder::reports(std::slice::from_ref(path))?;
            let Some(last) = found.last() else { continue };
            let count = found.len();
            writeln!(context.notes, "note: {}, the last of {count} in the folder", last.display())?;
            path.clone_from(last);
        }
        // Flags of reports say nothing about a heap: with them, the reader refuses the file.
        if let [file] = &self.files[..]
            && let Some(kind @ (FileKind::Dump | FileKind::Recording)) = FileKind::of(file)
            && self.display.is_default_or_json()
        {
            writeln!(context.notes, "note: {}, shown as by `heap tree`", kind.name())?;
            return HeapTreeArgs::of_file(file, self.display.json)?.run(context);
        }
        if let [first, second] = &self.files[..]
            && open::are_of_one_process([first, second], self.input.options())?
        {
            writeln!(
                context.notes,
                "note: both files are snapshots of one process, so they are compared, as by `diff`"
            )?;
            let (first, second) = (first.clone(), Some(second.clone()));
            let ShowArgs { display, input, .. } = self;
            let diff = DiffArgs { first, second, since: None, markdown: false, display, input };
            return diff.run(context);
        }
        let settings = self.display.settings();
        let filter = self.display.filter()?;
        let mut files = Vec::new();
        let mut sentences = Vec::new();
        let mut any_incomplete = false;
        for path in &self.files {
            let Opened { mut file, notes, is_incomplete } =
                open::open(path, self.input.options(), filter.clone(), &settings)?;
            sentences.extend(notes);
            any_incomplete |= is_incomplete;
            file.rename_processes_of(&files, &path.display().to_string());
            files.push(file);
        }
        let presented = Presented { files: &files, settings: &settings, notes: sentences };
        present::write(presented, &self.display, context)?;
        if let [report] = &self.files[..]
            && self.display.is_default()
        {
            tree::write_unreported(report, context)?;
        }
        Ok(exit_code(any_incomplete))
    }
}
