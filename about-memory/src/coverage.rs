//! `about-memory coverage DUMP`: how much of the heap is reported exactly once, on one screen.

pub(crate) mod view;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use memreport_analysis::analysis;
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::read;
use memreport_analysis::symbols::{Options, Symboliser};

use crate::dmd::DmdError;

/// `about-memory coverage`
#[derive(Debug, Args)]
pub struct CoverageArgs {
    /// A dump that DMD wrote; `-` for standard input
    #[arg(value_name = "DUMP")]
    input: PathBuf,

    /// How many crates, types, fields and remedies to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Answer in JSON, with all crates, types, fields and remedies
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Answer in Markdown, for a comment or a page
    #[arg(long)]
    markdown: bool,

    /// Look for the program's files, debug files, `.build-id` directories and Breakpad's symbol files here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// Columns of a line where nobody says how many there are.
const COLUMNS: usize = 100;

/// Runs the subcommand; remarks go to `err`.
///
/// # Errors
///
/// See [`DmdError`]. That nobody reads `out` any more is no error.
pub fn main(args: &CoverageArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), DmdError> {
    let path = &args.input;
    let read = if path == Path::new("-") {
        read::read(io::stdin().lock(), read::DEFAULT_LIMIT)
    } else {
        read::read_file(path)
    };
    let mut dump = read.map_err(|error| DmdError::Read(path.clone(), error))?;
    let mut search = Options::default();
    search.search.clone_from(&args.symbols);
    let notes = Symboliser::new(search).symbolicate(&mut dump).notes;
    for note in dump.notes.iter().chain(&notes) {
        // Standard error is for people: that nobody reads it must not stop the answer.
        let _ = writeln!(err, "{note}");
    }
    let mut options = ExplainOptions::default();
    options.root =
        std::env::current_dir().ok().map(|directory| directory.to_string_lossy().into_owned());
    let coverage = analysis::coverage(&dump, &options)
        .map_err(|error| DmdError::NoReports(path.clone(), error))?;
    let written = match (args.json, args.markdown) {
        (true, _) => view::write_json(&coverage, out),
        (_, true) => view::write_markdown(&coverage, args.top, out),
        _ => view::write_text(&coverage, args.top, columns(), out),
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(DmdError::Write(error)),
        _ => Ok(()),
    }
}

/// The columns of the terminal, where there is one.
fn columns() -> usize {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(COLUMNS)
}
