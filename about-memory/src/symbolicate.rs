//! `about-memory symbolicate DUMP -o OUT`: a dump that needs neither the program nor its symbols any more.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use memreport_analysis::read::{ReadError, unpack};
use memreport_analysis::symbols::{Options, Symboliser};

use crate::dmd::DmdError;

/// `about-memory symbolicate`
#[derive(Debug, Args)]
pub struct SymbolicateArgs {
    /// A dump that DMD wrote, ours or Firefox's, plain or gzipped; `-` for standard input
    #[arg(value_name = "DUMP")]
    input: PathBuf,

    /// Where to write it; gzipped if the name ends in `.gz`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Look for the program's files, debug files, `.build-id` directories and Breakpad's symbol files here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// Runs the subcommand; remarks go to `err`.
///
/// # Errors
///
/// See [`DmdError`].
pub fn main(args: &SymbolicateArgs, err: &mut dyn Write) -> Result<(), DmdError> {
    let bad = |error| DmdError::Read(args.input.clone(), error);
    let json = read(&args.input).map_err(bad)?;
    let mut options = Options::default();
    options.search.clone_from(&args.symbols);
    let mut symboliser = Symboliser::new(options);
    let (text, report) =
        memreport_analysis::symbols::symbolicate(&json, &mut symboliser).map_err(bad)?;
    // Standard error is for people: that nobody reads it must not stop the work.
    for note in &report.notes {
        let _ = writeln!(err, "{note}");
    }
    let _ = writeln!(err, "{} of {} addresses have functions now", report.found, report.asked);
    // Made only now: a mistake leaves an older file alone.
    let create = |error| DmdError::Create(args.output.clone(), error);
    let file = BufWriter::new(File::create(&args.output).map_err(create)?);
    write(&args.output, file, &text).map_err(DmdError::Write)
}

fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(ReadError::Io)?)
    };
    unpack(input)
}

fn write(path: &Path, mut file: impl Write, text: &[u8]) -> io::Result<()> {
    if path.extension().is_some_and(|ending| ending == "gz") {
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        encoder.write_all(text)?;
        return encoder.finish()?.flush();
    }
    file.write_all(text)?;
    file.flush()
}
