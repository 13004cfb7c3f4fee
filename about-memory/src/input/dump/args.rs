//! Defines the flags of commands that read dumps.

use super::reader::DumpReader;
use clap::Args;
use std::path::PathBuf;

/// Flags of commands that read dumps or recordings.
#[derive(Clone, Debug, Default, Args)]
pub struct DumpArgs {
    /// Look for program files, debug files, `.build-id` folders and Breakpad symbol files here
    /// first; repeat for several
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
