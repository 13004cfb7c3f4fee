//! Defines the flags of commands that read dumps.

use super::reader::DumpReader;
use clap::Args;
use std::path::PathBuf;

/// Flags of commands that read dumps or recordings.
#[derive(Clone, Debug, Default, Args)]
pub struct DumpArgs {
    /// Look in this folder first for the program's files, debug files, `.build-id` directories and Breakpad's symbol files;
    /// repeat for several
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

impl DumpArgs {
    /// Returns a reader that symbolicates by these flags.
    #[must_use]
    pub fn reader(&self) -> DumpReader {
        DumpReader::new(&self.symbols)
    }
}
