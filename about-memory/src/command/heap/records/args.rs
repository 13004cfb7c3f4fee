//! The options: dmd.py's under its names, and ours.

use std::path::PathBuf;

use crate::command::flags::{by, hexadecimal};
use crate::input::dump::DumpArgs;
use clap::{Args, ValueEnum};
use memreport_analysis::analysis::SortBy;
use memreport_analysis::axis::Axis;

/// `about-memory heap records`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of dmd.py")]
pub struct RecordsArgs {
    /// A dump that DMD wrote, ours or Firefox's, plain or gzipped; `-` for standard input
    #[arg(value_name = "DUMP")]
    pub(super) input: PathBuf,

    /// A second dump: show what changed from the first to this one
    #[arg(value_name = "DUMP2")]
    pub(super) input2: Option<PathBuf>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// How many frames of each stack to compare and show
    #[arg(short = 'f', long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=24))]
    pub(super) max_frames: u8,

    /// What to sort records by
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) sort_by: SortKey,

    /// Leave out allocation functions (of C and of Rust) at the start of stacks
    #[arg(short = 'a', long)]
    pub(super) ignore_alloc_fns: bool,

    /// Do not look up functions and lines of frames that have only an address
    #[arg(long)]
    pub(super) no_fix_stacks: bool,

    /// Begin with a summary to act on, and show the program's own frames and the types of blocks
    #[arg(long, conflicts_with = "input2")]
    pub(super) explain: bool,

    /// Group the blocks by an axis, as a table
    #[arg(long, value_name = "AXIS", conflicts_with_all = ["input2", "explain"], long_help = by::any_axis("Group the blocks by an axis, as a table"))]
    pub(super) by: Option<Axis>,

    /// In a scan dump, say who points at the block that has this address (hexadecimal), and who at those, as far as it goes
    #[arg(long, value_name = "ADDRESS", value_parser = hexadecimal, conflicts_with_all = ["input2", "explain", "by", "json"])]
    pub(super) referrers: Option<u64>,

    /// Answer in JSON: what --explain or --by would say
    #[arg(long, conflicts_with = "input2")]
    pub(super) json: bool,

    /// With --explain, --by, --referrers or --json: how many places of each class, or groups, to show [default: 5, with --by 20]
    #[arg(long, value_name = "N")]
    pub(super) top: Option<usize>,

    /// How it is symbolicated.
    #[command(flatten)]
    pub(super) dump: DumpArgs,

    /// In a scan dump, turn each word into the start of the block it points into, or 0 (in memory: the dump stays as it is)
    #[arg(long)]
    pub(super) clamp_contents: bool,

    /// Say on standard error what --clamp-contents did
    #[arg(long)]
    pub(super) print_clamp_stats: bool,

    /// Show stacks of DMD's own tests as one fixed frame
    #[arg(long, hide = true)]
    pub(super) filter_stacks_for_testing: bool,

    /// Show only records with this text in a frame of their allocation stack; `!TEXT` for those without; repeat to demand all
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) filter: Vec<String>,
}

/// What records can be sorted by.
#[derive(Debug, Default, Clone, Copy, ValueEnum)]
pub(super) enum SortKey {
    /// Usable bytes
    #[default]
    Usable,
    /// Requested bytes
    Req,
    /// Slop: usable bytes that were not requested
    Slop,
    /// Number of blocks
    NumBlocks,
}

impl From<SortKey> for SortBy {
    fn from(key: SortKey) -> Self {
        match key {
            SortKey::Usable => Self::Usable,
            SortKey::Req => Self::Req,
            SortKey::Slop => Self::Slop,
            SortKey::NumBlocks => Self::NumBlocks,
        }
    }
}
