//! `about-memory heap DUMP`: heap details, by scope, by stack and by type; `about-memory heap-diff A B`: what grew. Recordings have
//! a heap at each of their moments.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use memreport_analysis::heap::browse;
use memreport_analysis::heap::browse::{Axis, BrowseOptions};
use memreport_analysis::heap::growth;
use memreport_analysis::heap::growth::Growth;
use memreport_analysis::heap::{Frames, HeapOptions};
use memreport_analysis::read::Mode;
use memreport_analysis::recording::Moment;

use crate::dmd::{DmdError, OnlyArg};
use crate::symbolised::{Input, Reader};

/// `about-memory heap`
#[derive(Debug, Args)]
pub struct HeapArgs {
    /// A dump that DMD wrote, ours or Firefox's, or a recording; `-` for standard input
    #[arg(value_name = "DUMP|RECORDING")]
    input: PathBuf,

    /// The moment of a recording: `peak`, `end`, or seconds since its beginning [default: end]
    #[arg(long, value_name = "MOMENT")]
    at: Option<Moment>,

    /// What to break the heap down by, one within the other: `type,stack`. After one alone come the others: `scope` is
    /// `scope,type,stack`
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', default_value = "stack")]
    by: Vec<ByArg>,

    /// Only blocks that were allocated below a function with TEXT in its name; stacks begin there
    #[arg(long = "in", value_name = "TEXT")]
    within: Option<String>,

    /// Only blocks of types with TEXT in their name
    #[arg(long = "type", value_name = "TEXT")]
    of_type: Option<String>,

    /// Only blocks that were allocated in scopes with TEXT in their name, or inside such a scope
    #[arg(long, value_name = "TEXT")]
    scope: Option<String>,

    /// Gather what has less of the whole as `<other>` [default: 1, with --json 0]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    min: Option<f64>,

    /// Answer in JSON
    #[arg(long)]
    json: bool,

    /// What of the dump.
    #[command(flatten)]
    what: WhatArgs,
}

/// `about-memory heap-diff`
#[derive(Debug, Args)]
pub struct HeapDiffArgs {
    /// The dump from before, or a recording; or a folder, of whose dumps the first and the last by name are compared
    #[arg(value_name = "A|FOLDER")]
    first: PathBuf,

    /// The dump from after, or a recording [default: A, which must be a recording]
    #[arg(value_name = "B")]
    second: Option<PathBuf>,

    /// The moment of A, if it is a recording: `peak`, `end`, or seconds since its beginning [default: end, without B the beginning]
    #[arg(long, value_name = "MOMENT")]
    from: Option<Moment>,

    /// The moment of B, or without B the later one of A [default: end]
    #[arg(long, value_name = "MOMENT")]
    to: Option<Moment>,

    /// How many places to show; the others are one line
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Answer in JSON
    #[arg(long)]
    json: bool,

    /// What of the dumps.
    #[command(flatten)]
    what: WhatArgs,
}

/// What of a dump is looked at.
#[derive(Debug, Args)]
struct WhatArgs {
    /// Only blocks that are reported so often
    #[arg(long, value_enum, value_name = "REPORTED")]
    only: Option<OnlyArg>,

    /// Show the frames of the standard library too
    #[arg(long)]
    all_frames: bool,

    /// Look for the program's files, debug files, `.build-id` directories and Breakpad's symbol files here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// What the heap is broken down by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByArg {
    /// The stack that allocated
    Stack,
    /// The type
    Type,
    /// The scope that the program was in: what it said that it was at
    Scope,
}

/// The order that these words stand for.
fn axes(by: &[ByArg]) -> Vec<Axis> {
    let all: &[ByArg] = match by {
        [ByArg::Stack] => &[ByArg::Stack, ByArg::Type],
        [ByArg::Type] => &[ByArg::Type, ByArg::Stack],
        [ByArg::Scope] => &[ByArg::Scope, ByArg::Type, ByArg::Stack],
        several => several,
    };
    let axis = |by: &ByArg| match by {
        ByArg::Stack => Axis::Stack,
        ByArg::Type => Axis::Type,
        ByArg::Scope => Axis::Scope,
    };
    all.iter().map(axis).collect()
}

pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    number.ok().filter(|percent| (0.0..=100.0).contains(percent)).ok_or("write it as `0.5%`".into())
}

/// Runs `about-memory heap`; remarks go to `err`.
///
/// # Errors
///
/// See [`DmdError`]. That nobody reads `out` any more is no error.
pub fn main(args: &HeapArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), DmdError> {
    let mut reader = Reader::new(&args.what.symbols);
    let heap = reader.open(&args.input, err)?.heap(args.at, &args.what.options(), &args.input)?;
    let mut options = BrowseOptions::default();
    options.by = axes(&args.by);
    options.in_scope.clone_from(&args.scope);
    options.within.clone_from(&args.within);
    options.of_type.clone_from(&args.of_type);
    options.min_percent = args.min.unwrap_or(if args.json { 0.0 } else { 1.0 });
    let tree = browse::browse(&heap, &options);
    written(match args.json {
        true => browse::write_json(&heap, &tree, out),
        false => browse::write_text(&heap, &tree, &options, out),
    })
}

/// Runs `about-memory heap-diff`; remarks go to `err`.
///
/// # Errors
///
/// See [`DmdError`]. That nobody reads `out` any more is no error.
pub fn diff(args: &HeapDiffArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), DmdError> {
    let mut reader = Reader::new(&args.what.symbols);
    let options = args.what.options();
    let (first_path, second_path) = match &args.second {
        None if args.first.is_dir() => {
            let (first, last) = first_and_last(&args.first, err)?;
            (first, Some(last))
        }
        second => (args.first.clone(), second.clone()),
    };
    let first = reader.open(&first_path, err)?;
    let (before, after) = match &second_path {
        Some(path) => {
            let second = reader.open(path, err)?;
            if !are_alike(&first, &second) {
                return Err(DmdError::Modes(memreport_analysis::analysis::DifferentModes));
            }
            let before = first.heap(args.from, &options, &first_path)?;
            (before, second.heap(args.to, &options, path)?)
        }
        None if matches!(first, Input::Dump(_)) => return Err(DmdError::Alone(first_path)),
        None => {
            let from = args.from.unwrap_or(Moment::After(0));
            let before = first.heap(Some(from), &options, &first_path)?;
            (before, first.heap(args.to, &options, &first_path)?)
        }
    };
    let mut growth = growth::growth(&before, &after);
    if args.json {
        return written(growth::write_json(&growth, args.top, out));
    }
    shorten(&mut growth);
    written(growth::write_text(&growth, args.top, out))
}

/// Paths of the program are shortened where its directory is the one we are in; elsewhere they stay whole.
fn shorten(growth: &mut Growth) {
    let Ok(root) = std::env::current_dir() else { return };
    let root = format!("{}/", root.display());
    for line in growth.places.iter_mut().flat_map(|place| &mut place.lines).flatten() {
        if let Some(rest) = line.strip_prefix(&root) {
            *line = rest.to_owned();
        }
    }
}

/// Whether both are of one kind of blocks: recordings are of those that live.
fn are_alike(first: &Input, second: &Input) -> bool {
    match (first, second) {
        (Input::Dump(first), Input::Dump(second)) => {
            first.invocation.mode == second.invocation.mode
        }
        (Input::Dump(dump), _) | (_, Input::Dump(dump)) => dump.invocation.mode != Mode::Cumulative,
        _ => true,
    }
}

/// The first and the last dump of a folder, by their names: those that programs save by themselves have the time in them.
fn first_and_last(folder: &Path, err: &mut dyn Write) -> Result<(PathBuf, PathBuf), DmdError> {
    let entries =
        fs::read_dir(folder).map_err(|error| DmdError::Folder(folder.to_owned(), error))?;
    let is_dump = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".dmd.json.gz") || name.ends_with(".dmd.json")
    };
    let dumps = entries.flatten().map(|entry| entry.path()).filter(is_dump);
    let mut dumps: Vec<PathBuf> = dumps.collect();
    dumps.sort();
    match &dumps[..] {
        [first, .., last] => {
            let count = dumps.len();
            writeln!(err, "{} and {}, of {count} dumps", first.display(), last.display())
                .map_err(DmdError::Write)?;
            Ok((first.clone(), last.clone()))
        }
        _ => Err(DmdError::TooFew(folder.to_owned(), dumps.len())),
    }
}

impl WhatArgs {
    fn options(&self) -> HeapOptions {
        let mut options = HeapOptions::default();
        options.only = self.only.map(OnlyArg::class);
        options.frames = if self.all_frames { Frames::All } else { Frames::Own };
        options
    }
}

fn written(result: io::Result<()>) -> Result<(), DmdError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(DmdError::Write(error)),
        _ => Ok(()),
    }
}
