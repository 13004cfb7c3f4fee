//! `about-memory retained DUMP`: what keeps most of the heap alive, and the cycles that nothing outside points at.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::retention as holds;
use memreport_analysis::retention::{Holds, Owner, TreeOptions};

use crate::dmd::DmdError;
use crate::symbolised::Reader;

/// `about-memory retained`
#[derive(Debug, Args)]
pub struct RetainedArgs {
    /// A dump that was taken with DMD=--mode=scan, ours or Firefox's; `-` for standard input
    #[arg(value_name = "DUMP")]
    input: PathBuf,

    /// Group the blocks by one question, as a table: what would be given back if all blocks of a group were
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<OwnerArg>,

    /// How many kids of a node, groups or cycles to show [default: 10, with --by 20]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Gather what retains less of the heap as `<other>`
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = crate::heap::parse_percent, conflicts_with = "by")]
    min: f64,

    /// Show so many levels
    #[arg(long, value_name = "N", default_value_t = 12, conflicts_with = "by")]
    depth: usize,

    /// Answer in JSON
    #[arg(long)]
    json: bool,

    /// Look for the program's files, debug files, `.build-id` directories and Breakpad's symbol files here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// What blocks can be grouped by.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OwnerArg {
    /// The type, where the frames tell it
    Type,
    /// The program's own frame that allocated them
    Site,
    /// The crate whose code asked for them
    Crate,
    /// The paths of the reports that count them
    Reporter,
    /// The type and field by which they were reported
    Field,
}

impl From<OwnerArg> for Owner {
    fn from(owner: OwnerArg) -> Self {
        match owner {
            OwnerArg::Type => Self::Type,
            OwnerArg::Site => Self::Site,
            OwnerArg::Crate => Self::Crate,
            OwnerArg::Reporter => Self::Reporter,
            OwnerArg::Field => Self::Field,
        }
    }
}

/// Runs the subcommand; remarks go to `err`.
///
/// # Errors
///
/// See [`DmdError`]. That nobody reads `out` any more is no error.
pub fn main(args: &RetainedArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), DmdError> {
    let mut reader = Reader::new(&args.symbols);
    let dump = reader.read(&args.input, err)?;
    let options = explain_options(args.json);
    let holds = Holds::new(&dump, &options).map_err(|error| refused(&args.input, error))?;
    if let Some(by) = args.by {
        let groups = holds.groups(by.into(), args.top.unwrap_or(20));
        return written(match args.json {
            true => holds::write_groups_json(&groups.0, out),
            false => holds::write_groups(&holds, &groups, out),
        });
    }
    let mut tree = TreeOptions::default();
    let top = args.top.unwrap_or(tree.top);
    (tree.top, tree.min_percent, tree.depth) = (top, args.min, args.depth);
    let tree = holds.tree(&tree);
    let mut circles = holds.circles();
    let shown = if args.json { circles.len() } else { top };
    let steps = circles.iter().take(shown).flat_map(|circle| &circle.steps);
    let members = reader.members(&dump, &holds.pointing_types(steps));
    let steps = circles.iter_mut().take(shown).flat_map(|circle| &mut circle.steps);
    holds.name_fields(steps, &members);
    written(match args.json {
        true => holds::write_tree_json(&holds, &tree, &circles, out),
        false => holds::write_tree(&holds, &tree, out)
            .and_then(|()| holds::write_circles(&holds, &circles, top, out)),
    })
}

/// How blocks are named: in lines as wide as the terminal, where there is one.
pub(crate) fn explain_options(is_json: bool) -> ExplainOptions {
    let mut options = ExplainOptions::default();
    options.root =
        std::env::current_dir().ok().map(|directory| directory.to_string_lossy().into_owned());
    let stdout = io::stdout();
    if !is_json
        && stdout.is_terminal()
        && let Ok(size) = rustix::termios::tcgetwinsize(&stdout)
    {
        options.width = size.ws_col.into();
    }
    options
}

pub(crate) fn refused(path: &Path, error: memreport_analysis::analysis::ClampError) -> DmdError {
    DmdError::Clamp(path.to_owned(), error)
}

pub(crate) fn written(result: io::Result<()>) -> Result<(), DmdError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(DmdError::Write(error)),
        _ => Ok(()),
    }
}
