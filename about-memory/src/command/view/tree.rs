//! `about-memory tree DUMP|PID`: the typed tree of a heap, by owner.

use crate::command::flags::{candidates, percent, seconds};
use crate::command::heap::scan::Scan;
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError, DumpReader};
use crate::input::folder;
use crate::input::kind::head_of;
use crate::render::owners::{Shown, difference, json, text};
use clap::Args;
use memreport_analysis::ownership::{OwnerTree, OwnerTreeOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// `about-memory tree`
#[derive(Debug, Args)]
#[command(after_help = "\
Each block is in one row, so the rows add up to the heap. A row is a static, or a field with its type: all blocks that the row \
above holds through this field. A list or a tree of one type is one row. `?` marks rows to which only a word leads that looks \
like a pointer; `(shared)` marks blocks that several blocks of the row above hold.

Types and fields need debug information of the program (debug = true in its profile); line tables show types by the stacks \
that allocated the blocks.

Two inputs are compared: what each row has more or less in the second one. Threads are the same if they have the same name.")]
pub struct TreeArgs {
    /// A dump with DMD=--mode=scan, or one that `inspect --save` wrote; `-` is standard input; or
    /// the pid or the name of a running program, also of one without DMD
    #[arg(value_name = "DUMP|PID|NAME", add = candidates::programs_and_files())]
    input: PathBuf,

    /// A later one of the same program: show what has changed
    #[arg(value_name = "LATER", add = candidates::programs_and_files())]
    later: Option<PathBuf>,

    /// Show N levels below the roots
    #[arg(long, value_name = "N", default_value_t = 12)]
    depth: usize,

    /// Aggregate rows with a smaller share of the heap, or of two of all changes
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    min: f64,

    /// Only rows with TEXT in their name, with the rows above and below them
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,

    /// Pointers of this type hold nothing: `NonNull<gc::GcBox<…>>`, where `…` or `*` stands for
    /// any text; repeat for several
    #[arg(long, value_name = "TYPE")]
    not_through: Vec<String>,

    /// Count only the blocks that no reporter reported, of a scan that a snapshot saved
    #[arg(long)]
    unreported: bool,

    /// Print JSON: all rows
    #[arg(long)]
    json: bool,

    /// Wait at most this long for a running program
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = seconds)]
    timeout: Duration,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

impl TreeArgs {
    /// Prints the tree.
    ///
    /// # Errors
    /// The dump cannot be read or is no scan, the process cannot be read, or the answer cannot be
    /// written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut reader = self.dump.reader();
        let later = self.later.as_ref();
        let tree = self.tree(&self.input, later.is_none(), &mut reader, context)?;
        let later = later.map(|input| self.tree(input, true, &mut reader, context)).transpose()?;
        let columns = context.columns().unwrap_or(usize::MAX);
        let Self { depth, min, unreported, .. } = self;
        let shown = Shown { depth, min, filter: &self.filter, columns, unreported };
        match (&later, self.json) {
            (None, true) => json::write(&tree, &shown, &mut context.out.json()),
            (None, false) => text::write(&tree, &shown, &mut context.out),
            (Some(later), true) => {
                difference::write_json([&tree, later], &shown, &mut context.out.json())
            }
            (Some(later), false) => difference::write([&tree, later], &shown, &mut context.out),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    /// Builds the tree of a dump or a running program. Debug information is kept for the next one,
    /// if there is one.
    fn tree(
        &self,
        input: &Path,
        is_last: bool,
        reader: &mut DumpReader,
        context: &mut Context<'_>,
    ) -> Result<OwnerTree, Failure> {
        let scan = Scan { input, timeout: self.timeout };
        let dump = scan.read(reader, &mut context.notes)?;
        let types = reader.types(&dump);
        if is_last {
            reader.free_modules();
        }
        let mut options = OwnerTreeOptions::default();
        options.explain.root = folder::working_directory();
        options.not_through.clone_from(&self.not_through);
        options.unreported_only = self.unreported;
        let tree = OwnerTree::new(&dump, &types, &options);
        Ok(tree.map_err(|error| DumpError::Clamp(input.to_owned(), error))?)
    }
}

/// Writes what no reporter reported by owner, if there is a scan beside a report.
///
/// # Errors
/// The answer cannot be written. Why a scan cannot be read is a note.
pub(super) fn write_unreported(report: &Path, context: &mut Context<'_>) -> Result<(), Failure> {
    let Some(path) = folder::dump_of(report) else { return Ok(()) };
    if !is_scan(&path) {
        return Ok(());
    }
    let mut reader = DumpReader::default();
    let mut options = OwnerTreeOptions::default();
    options.explain.root = folder::working_directory();
    options.unreported_only = true;
    let tree = reader.read(&path, &mut context.notes).and_then(|dump| {
        let types = reader.types(&dump);
        reader.free_modules();
        OwnerTree::new(&dump, &types, &options)
            .map_err(|error| DumpError::Clamp(path.clone(), error))
    });
    match tree {
        Ok(tree) => {
            let columns = context.columns().unwrap_or(usize::MAX);
            let shown = Shown { depth: 3, min: 1.0, filter: "", columns, unreported: true };
            writeln!(context.out, "\nUnreported, by owner ({})\n", path.display())?;
            Ok(text::write(&tree, &shown, &mut context.out)?)
        }
        Err(error) => Ok(writeln!(context.notes, "note: not shown by owner: {error}")?),
    }
}

/// Returns whether a dump is of mode `scan`, which its first bytes tell.
fn is_scan(dump: &Path) -> bool {
    head_of(dump).is_some_and(|head| String::from_utf8_lossy(&head).contains(r#""mode":"scan""#))
}
