//! `about-memory export DUMP --to FORMAT`: a dump as the file of a viewer that people have already.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dmd::export::{self, Format, Frames, Heap, HeapOptions};

use crate::dmd::{DmdError, OnlyArg};
use crate::symbolised::Reader;

/// `about-memory export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Dumps that DMD wrote, ours or Firefox's; `-` for standard input. Massif's file and MemoryInfra take several, in order
    #[arg(value_name = "DUMP", required = true)]
    inputs: Vec<PathBuf>,

    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: FormatArg,

    /// Where to write it, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Only blocks that are reported so often
    #[arg(long, value_enum, value_name = "REPORTED")]
    only: Option<OnlyArg>,

    /// Only frames of the program and of the crates it uses, not those of the standard library
    #[arg(long)]
    own_frames: bool,

    /// Look for the program's files, debug files, `.build-id` directories and Breakpad's symbol files here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// Formats, and what opens them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// `go tool pprof`, speedscope, stores of profiles; gzipped
    Pprof,
    /// valgrind's `dh_view.html`, the Firefox Profiler
    Dhat,
    /// Folded stacks: flame graph scripts, speedscope
    Folded,
    /// A flame graph for any browser
    #[cfg(feature = "svg")]
    Svg,
    /// speedscope
    Speedscope,
    /// valgrind's `ms_print`
    Massif,
    /// Catapult's trace viewer, which was `chrome://tracing`
    MemoryInfra,
    /// The Firefox Profiler
    FirefoxProfiler,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Pprof => Self::Pprof,
            FormatArg::Dhat => Self::Dhat,
            FormatArg::Folded => Self::Folded,
            #[cfg(feature = "svg")]
            FormatArg::Svg => Self::Svg,
            FormatArg::Speedscope => Self::Speedscope,
            FormatArg::Massif => Self::Massif,
            FormatArg::MemoryInfra => Self::MemoryInfra,
            FormatArg::FirefoxProfiler => Self::FirefoxProfiler,
        }
    }
}

/// Runs the subcommand: the file to `out` (or to `--output`), remarks to `err`.
///
/// # Errors
///
/// See [`DmdError`]. That nobody reads `out` any more is no error.
pub fn main(args: &ExportArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), DmdError> {
    let format = Format::from(args.to);
    if args.inputs.len() > 1 && !format.takes_several() {
        return Err(DmdError::Several);
    }
    if args.to == FormatArg::Pprof && args.output.is_none() && io::stdout().is_terminal() {
        return Err(DmdError::Binary);
    }
    let mut options = HeapOptions::default();
    options.only = args.only.map(OnlyArg::class);
    options.frames = if args.own_frames { Frames::Own } else { Frames::All };
    let mut reader = Reader::new(&args.symbols);
    let mut heaps = Vec::new();
    for path in &args.inputs {
        let dump = reader.read(path, err)?;
        let heap = Heap::new(&dump, &options);
        heaps.push(heap.map_err(|error| DmdError::NoReports(path.clone(), error))?);
    }
    let written = match &args.output {
        None => export::write(format, &heaps, out).and_then(|()| out.flush()),
        Some(path) => {
            // Made only now: a mistake leaves an older file alone.
            let file = File::create(path).map_err(|error| DmdError::Create(path.clone(), error))?;
            let mut file = BufWriter::new(file);
            export::write(format, &heaps, &mut file).and_then(|()| file.flush())
        }
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(DmdError::Write(error)),
        _ => Ok(()),
    }
}
