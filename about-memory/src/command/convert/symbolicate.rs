//! `about-memory symbolicate DUMP -o OUT`: writes a dump that needs neither the program nor its
//! symbols.

use crate::command::flags::Output;
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory symbolicate`
#[derive(Debug, Args)]
pub struct SymbolicateArgs {
    /// A dump by DMD, memreport's or Firefox's, plain or gzipped; `-` is standard input
    #[arg(value_name = "DUMP")]
    input: PathBuf,

    /// The file to write; gzipped if the name ends in `.gz`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

impl SymbolicateArgs {
    /// Writes the symbolicated dump.
    ///
    /// # Errors
    /// The dump cannot be read, or the file cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let create = |error| DumpError::Create(self.output.clone(), error);
        let mut file = Output::create(&self.output).map_err(create)?;
        let mut reader = self.dump.reader();
        let is_gzip = self.output.extension().is_some_and(|ending| ending == "gz");
        let notes = if is_gzip {
            let mut encoder = GzEncoder::new(&mut file, Compression::default());
            let notes = reader.symbolicate_file(&self.input, &mut encoder)?;
            encoder.finish().map_err(Failure::answer)?;
            notes
        } else {
            reader.symbolicate_file(&self.input, &mut file)?
        };
        // An error above leaves an older file alone.
        file.keep().map_err(Failure::answer)?;
        for note in notes {
            // A closed standard error must not stop the work.
            let _ = writeln!(context.notes, "note: {note}");
        }
        Ok(ExitCode::SUCCESS)
    }
}
