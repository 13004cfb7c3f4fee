//! Defines the flags that choose blocks and frames of a heap.

use clap::{Args, ValueEnum};
use memreport_analysis::analysis::Class;
use memreport_analysis::heap::{Frames, HeapOptions};

/// Flags of commands that break the heap down.
#[derive(Debug, Args)]
pub struct BlockArgs {
    /// Only blocks with this number of reports
    #[arg(long, value_enum, value_name = "REPORTED")]
    pub only: Option<ReportedArg>,

    /// Show the frames of the standard library too
    #[arg(long)]
    pub all_frames: bool,
}

impl BlockArgs {
    pub(crate) fn options(&self) -> HeapOptions {
        let mut options = HeapOptions::default();
        options.only = self.only.map(ReportedArg::class);
        options.frames = if self.all_frames { Frames::All } else { Frames::Own };
        options
    }
}

/// The number of reports of a block.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ReportedArg {
    /// No report: dark matter
    Unreported,
    /// One report
    Once,
    /// Two reports or more
    Twice,
}

impl ReportedArg {
    /// Returns the class of such blocks.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Self::Unreported => Class::Unreported,
            Self::Once => Class::OnceReported,
            Self::Twice => Class::TwiceReported,
        }
    }
}
