//! Defines the flags of commands that read memory reports.

use crate::report::numbers::size::parse_whole_bytes;
use clap::Args;
use memreport::snapshot::read::Options;

/// Flags of commands that read memory reports.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Refuse files with more text than this, after decompression
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = parse_whole_bytes)]
    pub max_size: u64,
    /// Read gzipped text as UTF-8; the default is Latin-1 as in Firefox (`Ã©` for `é`)
    #[arg(long)]
    pub utf8: bool,
}

impl InputArgs {
    /// Returns the options for the reader of reports.
    pub fn options(&self) -> Options {
        Options { bytes: self.max_size, utf8: self.utf8, ..Options::default() }
    }
}
