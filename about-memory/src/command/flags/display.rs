//! Defines the flags that decide how a report is shown.

use crate::context::Context;
use crate::error::Failure;
use crate::render::show::text::Medium;
use crate::report::filter::Filter;
use crate::report::numbers::Bytes;
use crate::report::tree::{Settings, Threshold};
use clap::{Args, FromArgMatches, ValueEnum};

/// Flags that decide how a report is shown.
#[derive(Clone, Debug, PartialEq, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct DisplayArgs {
    /// Show all nodes, and print amounts in bytes
    #[arg(short, long)]
    pub verbose: bool,
    /// Only reports with TEXT in their path; write the slashes of URLs as backslashes
    #[arg(
        short,
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub filter: String,
    /// Treat the filter as a JavaScript regular expression
    #[arg(long, requires = "filter")]
    pub regex: bool,
    /// Only processes with NAME in their name
    #[arg(long, value_name = "NAME")]
    pub process: Option<String>,
    /// Show N levels of each tree; a root is the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Aggregate nodes below this size (`64K`, `1.5MB`) or share of the tree (`0.1%`) [Firefox: 1%]
    #[arg(long, value_name = "SIZE|PERCENT")]
    pub min: Option<Threshold>,
    /// Sort the nodes of trees
    #[arg(long, value_enum, default_value_t = Sort::Amount)]
    pub sort: Sort,
    /// Print bytes in this unit [default: mb; with --verbose: bytes]
    #[arg(long, value_enum)]
    pub units: Option<UnitArg>,
    /// Print the trees as JSON: all nodes, amounts as numbers
    #[arg(long, conflicts_with = "descriptions")]
    pub json: bool,
    /// Print each path with the description of its report
    #[arg(long)]
    pub descriptions: bool,
    /// Print notes about the collection after the report instead of on standard error
    #[arg(long)]
    pub notes: bool,
}

/// The key by which the nodes of a tree are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By name
    Name,
    /// By amount, then by name
    Amount,
}

/// The unit in which bytes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// In the largest unit that fits: B, KB, MB or GB
    Auto,
    /// In MB
    Mb,
    /// In bytes
    Bytes,
}

impl DisplayArgs {
    /// Returns whether no flag is given.
    pub(crate) fn is_default(&self) -> bool {
        !self.json && self.is_default_or_json()
    }

    /// Returns whether no flag is given, but perhaps `--json`.
    pub(crate) fn is_default_or_json(&self) -> bool {
        let command = DisplayArgs::augment_args(clap::Command::new("default"));
        let default = command.try_get_matches_from(["default"]);
        let default = default.and_then(|matches| DisplayArgs::from_arg_matches(&matches));
        default.is_ok_and(|default| DisplayArgs { json: self.json, ..default } == *self)
    }

    /// Returns the settings of the trees. JSON has all nodes unless a threshold is given.
    pub(crate) fn settings(&self) -> Settings {
        let everything = Threshold::Amount(0.0);
        Settings {
            is_verbose: self.verbose,
            is_diff: false,
            bytes: self.units.map(|unit| match unit {
                UnitArg::Auto => Bytes::Auto,
                UnitArg::Mb => Bytes::Mb,
                UnitArg::Bytes => Bytes::Plain,
            }),
            threshold: self.min.or(self.json.then_some(everything)),
            depth: self.depth.map(|depth| depth as usize),
            by_name: self.sort == Sort::Name,
        }
    }

    /// Returns the filter.
    ///
    /// # Errors
    /// The filter is not a regular expression.
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        if !self.regex {
            return Ok(Filter::text(&self.filter));
        }
        Ok(Filter::regex(&self.filter)?)
    }

    /// Returns the medium of the text: a terminal or a file, with colours or without.
    pub(crate) fn medium(context: &Context<'_>) -> Medium {
        let is_coloured = context.is_coloured();
        Medium { is_coloured, is_terminal: context.terminal.is_some() }
    }
}
