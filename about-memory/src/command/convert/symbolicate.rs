//! `about-memory symbolicate DUMP -o OUT`: writes a dump that needs neither the program nor its
//! symbols.

use crate::command::flags::Output;
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError};
use clap::Args;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
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
        let (text, notes) = self.dump.reader().symbolicate_json(&self.input)?;
        for note in notes {
            // A closed standard error must not stop the work.
            let _ = writeln!(context.notes, "note: {note}");
        }
        // Create the file last: an error above leaves an older file alone.
        let create = |error| DumpError::Create(self.output.clone(), error);
        let mut file = Output::create(&self.output).map_err(create)?;
        write(&self.output, &mut file, &text)
            .and_then(|()| file.keep())
            .map_err(Failure::answer)?;
        Ok(ExitCode::SUCCESS)
    }
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
