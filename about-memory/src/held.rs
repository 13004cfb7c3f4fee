//! `about-memory held DUMP --block ADDRESS`: by which ways blocks are held.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use memreport_analysis::retention as holds;
use memreport_analysis::retention::{Holds, Target, WayOptions};

use crate::dmd::{DmdError, hexadecimal};
use crate::retained::{explain_options, refused, written};
use crate::symbolised::Reader;

/// `about-memory held`
#[derive(Debug, Args)]
pub struct HeldArgs {
    /// A dump that was taken with DMD=--mode=scan, ours or Firefox's; `-` for standard input
    #[arg(value_name = "DUMP")]
    input: PathBuf,

    /// Whose ways are wanted.
    #[command(flatten)]
    target: TargetArgs,

    /// How many ways to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Answer in JSON
    #[arg(long)]
    json: bool,

    /// Look for the program's files, debug files, `.build-id` directories and Breakpad's symbol files here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// Whose ways are wanted: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TargetArgs {
    /// The block that has this address (hexadecimal): several of its shortest ways
    #[arg(long, value_name = "ADDRESS", value_parser = hexadecimal)]
    block: Option<u64>,

    /// Blocks of types with TEXT in their names: the shortest way of each, alike ones together
    #[arg(long = "type", value_name = "TEXT")]
    of_type: Option<String>,

    /// Blocks that are reported by a path or field with TEXT in its name
    #[arg(long, value_name = "TEXT")]
    reporter: Option<String>,

    /// Blocks that were allocated below a function with TEXT in its name
    #[arg(long, value_name = "TEXT")]
    site: Option<String>,

    /// The blocks of a record, as `about-memory dmd DUMP` numbers them
    #[arg(long, value_name = "N")]
    record: Option<usize>,
}

impl TargetArgs {
    fn target(&self) -> Target {
        match self {
            Self { block: Some(address), .. } => Target::Block(*address),
            Self { of_type: Some(text), .. } => Target::Type(text.clone()),
            Self { reporter: Some(text), .. } => Target::Reporter(text.clone()),
            Self { site: Some(text), .. } => Target::Site(text.clone()),
            Self { record, .. } => Target::Record(record.unwrap_or(0)),
        }
    }
}

/// Runs the subcommand; remarks go to `err`.
///
/// # Errors
///
/// See [`DmdError`]. That nobody reads `out` any more is no error.
pub fn main(args: &HeldArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), DmdError> {
    let mut reader = Reader::new(&args.symbols);
    let dump = reader.read(&args.input, err)?;
    let options = explain_options(args.json);
    let holds = Holds::new(&dump, &options).map_err(|error| refused(&args.input, error))?;
    let mut ways = WayOptions::default();
    ways.top = args.top;
    let held = holds.held(&args.target.target(), &ways);
    let mut held = held.map_err(|error| DmdError::NotThere(args.input.clone(), error))?;
    let steps = held.ways.iter().flat_map(|way| &way.steps);
    let members = reader.members(&dump, &holds.pointing_types(steps));
    holds.name_fields(held.ways.iter_mut().flat_map(|way| &mut way.steps), &members);
    written(match args.json {
        true => holds::write_held_json(&holds, &held, out),
        false => holds::write_held(&holds, &held, out),
    })
}
