//! Defines the flags of `heap records`: dmd.py's flags under the same names, and more.

use std::path::PathBuf;

use crate::command::flags::{by, candidates, hexadecimal};
use crate::input::dump::DumpArgs;
use clap::{ArgGroup, Args, ValueEnum};
use memreport_analysis::analysis::SortBy;
use memreport_analysis::axis::Axis;

/// `about-memory heap records`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("answer").args(["explain", "by", "referrers", "json"]).multiple(true))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of dmd.py")]
pub struct RecordsArgs {
    /// A dump by DMD, memreport's or Firefox's, plain or gzipped; `-` is standard input; or
    /// the pid or the name of a running program
    #[arg(value_name = "DUMP|PID|NAME", add = candidates::programs_and_files())]
    pub(super) input: PathBuf,

    /// A second dump: print the difference
    #[arg(value_name = "DUMP2", add = candidates::programs_and_files())]
    pub(super) input2: Option<PathBuf>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Compare and show N frames of each stack
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=24))]
    pub(super) max_frames: u8,

    /// Sort records by this key
    #[arg(short, long, value_enum, default_value_t, conflicts_with = "answer")]
    pub(super) sort_by: SortKey,

    /// Remove allocation functions (of C and of Rust) from the start of stacks
    #[arg(short = 'a', long, conflicts_with = "answer")]
    pub(super) ignore_alloc_fns: bool,

    /// Do not symbolicate frames that have only an address
    #[arg(long)]
    pub(super) no_fix_stacks: bool,

    /// Print a summary first, and show the program's own frames and the types of blocks
    #[arg(long, conflicts_with = "input2")]
    pub(super) explain: bool,

    /// Group the blocks by an axis, as a table
    #[arg(long, value_name = "AXIS", conflicts_with_all = ["input2", "explain"], long_help = by::any_axis("Group the blocks by an axis, as a table"))]
    pub(super) by: Option<Axis>,

    /// In a scan dump, print the blocks that point to the block at this address (hexadecimal), and
    /// the blocks that point to those, and so on
    #[arg(long, value_name = "ADDRESS", value_parser = hexadecimal, conflicts_with_all = ["input2", "explain", "by", "json"])]
    pub(super) referrers: Option<u64>,

    /// Print the answer of --explain or --by as JSON
    #[arg(long, conflicts_with = "input2")]
    pub(super) json: bool,

    /// With --explain, --by, --referrers or --json: show N places of each class, or groups
    /// [default: 5, with --by 20]
    #[arg(long, value_name = "N", requires = "answer")]
    pub(super) top: Option<usize>,

    /// Flags of symbolication.
    #[command(flatten)]
    pub(super) dump: DumpArgs,

    /// In a scan dump, replace each word by the start of the block it points into, or 0; the file
    /// is not changed
    #[arg(long)]
    pub(super) clamp_contents: bool,

    /// Print statistics of --clamp-contents on standard error
    #[arg(long, requires = "clamp_contents")]
    pub(super) print_clamp_stats: bool,

    /// Print stacks of DMD's own tests as one fixed frame
    #[arg(long, hide = true)]
    pub(super) filter_stacks_for_testing: bool,

    /// Only records with TEXT in a frame of their allocation stack; `!TEXT` excludes; repeat to
    /// combine with AND
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "answer")]
    pub(super) filter: Vec<String>,
}

/// The key by which records are sorted.
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
