//! Defines the command line: the commands, their groups and the old names.

mod examples;
mod help;
mod words;

use crate::command::annotate::AnnotateArgs;
use crate::command::check::CheckArgs;
use crate::command::convert::export::ExportArgs;
use crate::command::convert::metrics::MetricsArgs;
use crate::command::convert::symbolicate::SymbolicateArgs;
use crate::command::flags::GlobalArgs;
use crate::command::heap::census::CensusArgs;
use crate::command::heap::coverage::CoverageArgs;
use crate::command::heap::diff::HeapDiffArgs;
use crate::command::heap::dominators::DominatorsArgs;
use crate::command::heap::records::RecordsArgs;
use crate::command::heap::tree::HeapTreeArgs;
use crate::command::heap::why_alive::WhyAliveArgs;
use crate::command::shell::completions::CompletionsArgs;
use crate::command::shell::man::ManArgs;
use crate::command::view::diff::DiffArgs;
use crate::command::view::explain_rss::ExplainRssArgs;
use crate::command::view::page::build::PageBuildArgs;
use crate::command::view::page::open::PageOpenArgs;
#[cfg(feature = "serve")]
use crate::command::view::page::serve::PageServeArgs;
use crate::command::view::recording::RecordingArgs;
use crate::command::view::show::ShowArgs;
use crate::command::view::tree::TreeArgs;
use crate::command::{FleetCommand, LaunchCommand, ProcessCommand};
use crate::context::{Context, Surface, Words};
use crate::error::Failure;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;
use std::ffi::OsString;
use std::process::ExitCode;

/// Shows memory reports of Firefox, and of programs that use memreport, as trees: the same text as
/// Firefox's page about:memory.
///
/// Values are in MB; as in Firefox, a MB is 1,048,576 bytes. The percentage is the share of the
/// tree. `++` marks a node whose children are too small to show (`(7 tiny)`), `--` a node whose
/// children follow, `──` a measurement. `[2]` marks the sum of two reports, `[?!]` a value that is
/// negative or too large. Unlike Firefox's page, it shows reporters of the program's own however
/// small they are; `--min 1%` shows exactly what Firefox shows.
///
/// The exit status is 0 on success, 1 if a limit is exceeded (`check`, `run --fail-above`), 2 on an
/// error, and 3 if a report is incomplete: a reporter was missed, because a lock of its values was
/// held, or it did not return, or panicked. `heap-unclassified-or-missed` has its memory then.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Cli {
    /// The command, by default `show`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The arguments of `show`.
    #[command(flatten)]
    pub show: ShowArgs,
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show memory reports as trees; the default for a file
    Show(ShowArgs),
    /// Show the differences of two reports
    Diff(DiffArgs),
    /// Show reports, dumps and recordings in a browser
    Page(Box<PageArgs>),
    /// Explain resident memory (RSS) and its growth
    #[command(alias = "resident")]
    ExplainRss(ExplainRssArgs),
    /// A command that starts a program.
    #[command(flatten)]
    Launch(LaunchCommand),
    /// Summarise a recording: sums, peak, lifetimes
    Recording(RecordingArgs),
    /// A command for a running process.
    #[command(flatten)]
    Process(ProcessCommand),
    /// Show the heap of a program as a typed tree, by owner
    Tree(TreeArgs),
    /// Change a program's source so that its heap is reported
    Annotate(AnnotateArgs),
    /// Analyse a dump or a recording of the heap
    Heap(Box<HeapArgs>),
    /// Convert a dump or recording for another viewer
    Export(ExportArgs),
    /// Print a report as OpenMetrics text for Prometheus
    Metrics(MetricsArgs),
    /// Add functions and lines to the frames of a dump
    Symbolicate(SymbolicateArgs),
    /// Compare a report with a budget; exit status 1 if over
    Check(CheckArgs),
    /// A command about a fleet of programs.
    #[command(flatten)]
    Fleet(FleetCommand),
    /// Print the script that completes words in a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
    /// Old name of `page build`
    #[command(hide = true)]
    Html(PageBuildArgs),
    /// Old name of `page serve`
    #[cfg(feature = "serve")]
    #[command(hide = true)]
    Serve(PageServeArgs),
    /// Old name of `heap diff`
    #[command(hide = true)]
    HeapDiff(HeapDiffArgs),
    /// Old name of `heap census`
    #[command(hide = true)]
    Census(CensusArgs),
    /// Old name of `heap coverage`
    #[command(hide = true)]
    Coverage(CoverageArgs),
    /// Old name of `heap dominators`
    #[command(hide = true)]
    Retained(DominatorsArgs),
    /// Old name of `heap why-alive`
    #[command(hide = true)]
    Held(WhyAliveArgs),
    /// Old name of `heap records`
    #[command(hide = true)]
    Dmd(RecordsArgs),
}

/// `about-memory page`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct PageArgs {
    /// The command, by default `open`.
    #[command(subcommand)]
    pub command: Option<PageCommand>,
    /// The arguments of `open`.
    #[command(flatten)]
    pub open: PageOpenArgs,
}

/// A command of the group `page`.
#[derive(Debug, Subcommand)]
pub enum PageCommand {
    /// Write a page and open it in the browser; the default
    Open(PageOpenArgs),
    /// Write one page that works offline in any browser
    Build(PageBuildArgs),
    /// Serve the page on this machine, with live snapshots
    #[cfg(feature = "serve")]
    Serve(PageServeArgs),
}

/// `about-memory heap`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct HeapArgs {
    /// The command, by default `tree`.
    #[command(subcommand)]
    pub command: Option<HeapCommand>,
    /// The arguments of `tree`.
    #[command(flatten)]
    pub tree: HeapTreeArgs,
}

/// A command of the group `heap`.
#[derive(Debug, Subcommand)]
pub enum HeapCommand {
    /// Break the heap down by stack, type and scope; the default
    Tree(HeapTreeArgs),
    /// Show which places grew between two dumps or moments
    Diff(HeapDiffArgs),
    /// Count blocks by type, stack, thread, age and so on
    Census(CensusArgs),
    /// Show how much of the heap is reported exactly once
    Coverage(CoverageArgs),
    /// Show the dominator tree and unreachable cycles of a scan
    Dominators(DominatorsArgs),
    /// Show the reference paths that keep blocks alive
    WhyAlive(WhyAliveArgs),
    /// Show records of dumps as Mozilla's dmd.py does
    Records(RecordsArgs),
}

impl Cli {
    /// Returns the definition of the command line, with its groups and examples.
    #[must_use]
    pub fn command_with_help() -> clap::Command {
        help::add(Cli::command())
    }

    /// Answers a shell that completes a word, and ends the process then. Otherwise does nothing.
    pub fn complete() {
        CompleteEnv::with_factory(Cli::command_with_help).complete();
    }

    /// Parses the words of the command line.
    ///
    /// # Errors
    /// The words are wrong, or ask for the help.
    pub fn parse_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = words::with_global_flags_last(words);
        let words = words::with_export_of_fleet(words);
        let mut commands = Cli::command_with_help();
        let matches = commands.try_get_matches_from_mut(&words).map_err(|error| {
            let is_conflict = error.kind() == ErrorKind::ArgumentConflict;
            let unknown = is_conflict.then(|| words::unknown_command(&words, &commands)).flatten();
            unknown.unwrap_or(error)
        })?;
        Cli::from_arg_matches(&matches)
    }

    /// Runs the command.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self.command {
            None => {
                let first = self.show.files.first().cloned();
                let done = self.show.run(context);
                done.map_err(|failure| words::name_similar_command(failure, first, ""))
            }
            Some(command) => command.run(context),
        }
    }
}

impl Words for Cli {
    fn surface(&self) -> Surface {
        let may_page = self.command.as_ref().is_none_or(Command::may_page);
        self.global.surface(may_page)
    }

    fn run_command(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        self.run(context)
    }
}

impl Command {
    /// Returns whether the answer may be long, and comes all at once.
    fn may_page(&self) -> bool {
        matches!(
            self,
            Command::Show(_)
                | Command::Diff(_)
                | Command::ExplainRss(_)
                | Command::Recording(_)
                | Command::Tree(_)
                | Command::Annotate(_)
                | Command::Heap(_)
                | Command::Metrics(_)
                | Command::HeapDiff(_)
                | Command::Census(_)
                | Command::Coverage(_)
                | Command::Retained(_)
                | Command::Held(_)
                | Command::Dmd(_)
        )
    }

    fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self {
            Command::Show(args) => args.run(context),
            Command::Diff(args) => args.run(context),
            Command::Page(args) => args.run(context),
            Command::Html(args) => args.run(context),
            #[cfg(feature = "serve")]
            Command::Serve(args) => args.run(context),
            Command::ExplainRss(args) => args.run(context),
            Command::Launch(command) => command.run(context),
            Command::Recording(args) => args.run(context),
            Command::Process(command) => command.run(context),
            Command::Tree(args) => args.run(context),
            Command::Annotate(args) => args.run(context),
            Command::Heap(args) => args.run(context),
            Command::Export(args) => args.run(context),
            Command::Metrics(args) => args.run(context),
            Command::Symbolicate(args) => args.run(context),
            Command::Check(args) => args.run(context),
            Command::Fleet(command) => command.run(context),
            Command::Completions(args) => args.run(context),
            Command::Man(args) => args.run(Cli::command_with_help(), context),
            Command::HeapDiff(args) => HeapCommand::Diff(args).run(context),
            Command::Census(args) => HeapCommand::Census(args).run(context),
            Command::Coverage(args) => HeapCommand::Coverage(args).run(context),
            Command::Retained(args) => HeapCommand::Dominators(args).run(context),
            Command::Held(args) => HeapCommand::WhyAlive(args).run(context),
            Command::Dmd(args) => HeapCommand::Records(args).run(context),
        }
    }
}

impl HeapArgs {
    fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self.command {
            None => {
                let first = self.tree.input().cloned();
                let done = self.tree.run(context);
                done.map_err(|failure| words::name_similar_command(failure, first, "heap "))
            }
            Some(command) => command.run(context),
        }
    }
}

impl PageArgs {
    fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self.command {
            None => {
                let first = self.open.contents.files.first().cloned();
                let done = self.open.run(context);
                done.map_err(|failure| words::name_similar_command(failure, first, "page "))
            }
            Some(PageCommand::Open(args)) => args.run(context),
            Some(PageCommand::Build(args)) => args.run(context),
            #[cfg(feature = "serve")]
            Some(PageCommand::Serve(args)) => args.run(context),
        }
    }
}

impl HeapCommand {
    fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        match self {
            HeapCommand::Tree(args) => args.run(context),
            HeapCommand::Diff(args) => args.run(context),
            HeapCommand::Census(args) => args.run(context),
            HeapCommand::Coverage(args) => args.run(context),
            HeapCommand::Dominators(args) => args.run(context),
            HeapCommand::WhyAlive(args) => args.run(context),
            HeapCommand::Records(args) => args.run(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command_with_help().debug_assert();
    }

    #[test]
    fn a_dump_needs_no_command() {
        let parse = |words: &[&str]| Cli::try_parse_from(words).unwrap().command;
        let command = |words: &[&str]| match parse(words) {
            Some(Command::Heap(args)) => args.command,
            other => panic!("not of the group `heap`: {other:?}"),
        };
        assert!(command(&["about-memory", "heap", "dump.json", "--by", "type"]).is_none());
        let coverage = command(&["about-memory", "heap", "coverage", "dump.json"]);
        assert!(matches!(coverage, Some(HeapCommand::Coverage(_))), "the word is a command");
        assert!(Cli::try_parse_from(["about-memory", "heap"]).is_err());
    }
}
