//! Shows memory reports and dumps as text.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Show the records of a DMD dump, or how two dumps differ.
    Dmd(about_memory::dmd::DmdArgs),
}

fn main() -> ExitCode {
    let Command::Dmd(args) = Command::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = about_memory::dmd::main(&args, &mut out, &mut io::stderr());
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing more can be done if even this cannot be written.
            let _ = writeln!(io::stderr(), "about-memory: {error}");
            ExitCode::FAILURE
        }
    }
}
