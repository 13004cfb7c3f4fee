//! `about-memory heap tree DUMP`: breaks the heap down by stack, type and scope.

use crate::command::flags::{BlockArgs, by, candidates, percent};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::DumpArgs;
use clap::{Args, FromArgMatches};
use memreport_analysis::axis::{Axis, GroupBy};
use memreport_analysis::heap::browse;
use memreport_analysis::heap::browse::BrowseOptions;
use memreport_analysis::recording::Moment;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The help of `--by` before the list of axes.
const PURPOSE: &str = "Group the blocks by these axes, one within the other: `type,stack`. `scope` alone is `scope,type,stack`";

/// `about-memory heap tree`
#[derive(Debug, Args)]
pub struct HeapTreeArgs {
    /// A dump that DMD wrote, ours or Firefox's, or a recording; `-` for standard input;
    /// or the pid or the name of a running program
    // `heap` has these flags too, and no dump if it has a command.
    #[arg(value_name = "DUMP|RECORDING|PID|NAME", required = true, add = candidates::programs_and_files())]
    input: Option<PathBuf>,

    /// The moment of a recording: `peak`, `end`, or seconds since the start [default: end]
    #[arg(long, value_name = "MOMENT")]
    at: Option<Moment>,

    /// Group the blocks by these axes, one within the other: `type,stack`.
    /// `scope` alone is `scope,type,stack`
    #[arg(long, value_name = "AXIS", value_delimiter = ',', default_value = "stack", value_parser = by::tree_axis, long_help = by::tree_axes(PURPOSE))]
    by: Vec<Axis>,

    /// Only blocks allocated below a function with TEXT in its name; stacks start there
    #[arg(long = "in", value_name = "TEXT")]
    within: Option<String>,

    /// Only blocks of the type with this name
    #[arg(long = "type", value_name = "NAME")]
    of_type: Option<String>,

    /// Only blocks of types with TEXT in their name
    #[arg(long = "type-contains", value_name = "TEXT", conflicts_with = "of_type")]
    of_type_with: Option<String>,

    /// Only blocks allocated in a scope with TEXT in its name, or inside such a scope
    #[arg(long, value_name = "TEXT")]
    scope: Option<String>,

    /// Aggregate nodes with less of the whole as `<other>` [default: 1, with --json 0]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min: Option<f64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// The blocks and frames to show.
    #[command(flatten)]
    blocks: BlockArgs,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

impl HeapTreeArgs {
    /// Returns the arguments for a file without other flags, but perhaps `--json`.
    ///
    /// # Errors
    /// Never: the flags have defaults.
    pub(crate) fn of_file(file: &Path, json: bool) -> Result<Self, clap::Error> {
        let command = HeapTreeArgs::augment_args(clap::Command::new("tree"));
        let flag = json.then_some(OsStr::new("--json"));
        let words = [OsStr::new("tree")].into_iter().chain(flag);
        let words = words.chain([OsStr::new("--"), file.as_os_str()]);
        HeapTreeArgs::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// Returns the word that names the dump or the program.
    pub(crate) fn input(&self) -> Option<&PathBuf> {
        self.input.as_ref()
    }

    /// Prints the tree.
    ///
    /// # Errors
    /// The file cannot be read, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let input = self.input.ok_or("name a dump")?;
        let source = self.dump.reader().open(&input, &mut context.notes)?;
        let heap = source.heap(self.at, &self.blocks.options(), &input)?;
        let mut options = BrowseOptions::default();
        options.by = browse::axes(GroupBy::new(self.by)?)?;
        options.in_scope = self.scope;
        options.within = self.within;
        options.of_type = self.of_type;
        options.of_type_with = self.of_type_with;
        options.min_percent = self.min.unwrap_or(if self.json { 0.0 } else { 1.0 });
        let tree = browse::browse(&heap, &options);
        if let Some(name) = &options.of_type
            && !heap.types().contains(&**name)
        {
            note_unknown_type(name, &heap.types(), &mut context.notes)?;
        }
        match self.json {
            true => browse::write_json(&heap, &tree, &mut context.out.json()),
            false => browse::write_text(&heap, &tree, &options, &mut context.out),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The most names of types in a note.
const MOST_NAMES: usize = 3;

/// Notes that no block has this type, and which types have the name within theirs.
fn note_unknown_type(
    name: &str,
    types: &BTreeSet<&str>,
    notes: &mut dyn Write,
) -> std::io::Result<()> {
    write!(notes, "note: no block has the type `{name}`")?;
    let near: Vec<_> = types.iter().filter(|other| other.contains(name)).collect();
    if !near.is_empty() {
        let names: Vec<_> =
            near.iter().take(MOST_NAMES).map(|other| format!("`{other}`")).collect();
        let more = if near.len() > MOST_NAMES { " and others" } else { "" };
        write!(notes, "; `--type-contains` finds {}{more}", names.join(", "))?;
    }
    writeln!(notes)
}
