//! `about-memory annotate DUMP`: a patch of a program's source that reports its heap.
//!
//! A scan has the blocks that a static leads to; debug information has the types on the way; the
//! source has the places where a derive, a reporter or an attribute is added. The compiler decides
//! what can be measured: changes that do not compile are replaced or dropped.

mod error;
pub(crate) mod source;
mod plan;
mod edits;
mod settle;
mod newer;
mod forecast;
mod patch;
mod text;
mod json;

use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::DumpArgs;
use crate::input::progress::Progress;
use clap::Args;
use error::AnnotateError;
use memreport_analysis::read::{Dump, Mode};
use patch::Patch;
use plan::{Facts, file_name};
use source::index::SourceIndex;
use source::workspace::Sources;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory annotate`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct AnnotateArgs {
    /// The options.
    #[command(flatten)]
    pub(crate) options: AnnotateOptions,
}

/// Behind the options in the help.
pub(crate) const HELP: &str = "\
The patch adds `#[derive(MallocSizeOf)]` to the types that own unreported memory, reporters of the statics that hold it, and \
features of memreport for types of other crates; fields that were skipped are measured. `cargo check` checks it in a copy of \
the workspace, in its target folder; what does not compile is left out, with the reason. Each part names the bytes that \
are classified with it. `patch -p1` and `git apply` read the output.

The dump must be a scan of a program with debug information (debug = true in its profile).";

/// Options of `about-memory annotate` and `cargo memreport annotate`.
#[derive(Debug, Args)]
pub(crate) struct AnnotateOptions {
    /// A dump with DMD=--mode=scan; `-` is standard input
    #[arg(value_name = "DUMP")]
    input: PathBuf,

    /// Change the files; refused if they are newer than the program
    #[arg(long)]
    apply: bool,

    /// Leave out statics and fields that hold fewer bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    min: u64,

    /// The manifest of the program's package or workspace, if not in this folder or above
    #[arg(long, value_name = "FILE")]
    manifest_path: Option<PathBuf>,

    /// Print JSON: all changes with their bytes, what stays unreported, and the patch
    #[arg(long)]
    json: bool,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

impl AnnotateArgs {
    /// Prints the patch, or applies it.
    ///
    /// # Errors
    /// The dump or the source cannot be used, there is nothing to change, or a file cannot be
    /// written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        self.options.run(context)
    }
}

impl AnnotateOptions {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut reader = self.dump.reader();
        let dump = reader.read(&self.input, &mut context.notes)?;
        let path = self.program(&dump)?;
        let types = reader.types(&dump);
        if types.is_empty() {
            return Err(AnnotateError::NoTypes(path.into()).into());
        }
        let sources = Sources::read(self.manifest_path.as_deref()).map_err(AnnotateError::Cargo)?;
        let program = file_name(&path);
        let index = SourceIndex::read(&sources.crates_of(&program));
        for problem in &index.problems {
            writeln!(context.notes, "note: not understood, and left as it is: {problem}")?;
        }
        let facts = Facts {
            dump: &dump,
            types: &types,
            sources: &sources,
            index: &index,
            program: &program,
        };
        let mut patch = self.patch(&facts)?;
        if self.apply {
            apply(&mut patch)?;
        } else if !patch.newer.is_empty() {
            writeln!(context.notes, "note: {}", AnnotateError::Newer(patch.newer.clone()))?;
        }
        match (self.json, self.apply) {
            (true, _) => json::write(&patch, &mut context.out.json()),
            (_, true) => text::write_applied(&patch, &mut context.out),
            _ => text::write(&patch, &mut context.out.machine_bytes()),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the program of the dump.
    fn program(&self, dump: &Dump) -> Result<String, AnnotateError> {
        let ours = dump.extension.as_ref();
        let program = ours.and_then(|ours| ours.program.clone());
        let program = program.ok_or_else(|| AnnotateError::NoProgram(self.input.clone()))?;
        if dump.invocation.mode != Mode::Scan {
            return Err(AnnotateError::NotScan(self.input.clone()));
        }
        Ok(program)
    }

    fn patch(&self, facts: &Facts<'_>) -> Result<Patch, AnnotateError> {
        if !facts.index.crates.iter().any(|krate| facts.types.has_type(krate, "")) {
            let root = facts.sources.workspace_root.clone();
            return Err(AnnotateError::OtherSource(facts.program.to_owned(), root));
        }
        let mut plan = facts.plan(self.min)?;
        facts.require_changes(&plan)?;
        if self.apply {
            // The compiler takes longer than a look at the files.
            let newer = facts.newer(&plan, &facts.changes(&plan)?, &self.input)?;
            if !newer.is_empty() {
                return Err(AnnotateError::Newer(newer));
            }
        }
        let changes = {
            let step = Progress::start("checking a copy with cargo".to_owned(), None);
            facts.settle(&mut plan, &mut |number| {
                step.set_words(format!("checking a copy with cargo, number {number}"));
            })?
        };
        facts.require_changes(&plan)?;
        let newer = facts.newer(&plan, &changes, &self.input)?;
        let forecast = facts.forecast(&plan, &changes)?;
        let root = &facts.sources.workspace_root;
        let mut patch = Patch::new(facts.program, root, (&plan, changes), forecast);
        patch.newer = newer;
        Ok(patch)
    }
}

/// Writes the files of a patch.
fn apply(patch: &mut Patch) -> Result<(), AnnotateError> {
    if !patch.newer.is_empty() {
        return Err(AnnotateError::Newer(patch.newer.clone()));
    }
    for file in &patch.files {
        fs::write(&file.path, &file.new)
            .map_err(|error| AnnotateError::File(file.path.clone(), error))?;
    }
    patch.is_applied = true;
    Ok(())
}
