//! `cargo memreport test`: runs each test in a process of its own, and shows the blocks that it
//! leaves behind.

mod harness;
mod measure;

use super::build::{BuildArgs, CARGO};
use super::error::CargoError;
use super::workspace::Workspace;
use crate::context::Context;
use crate::error::Failure;
use clap::{Args, ValueEnum};
use harness::Binary;
use measure::{Measured, Measurer};
use memreport_analysis::analysis::{Place, commas};
use memreport_analysis::retention::Left;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::process::ExitCode;

/// `cargo memreport test`
#[derive(Args, Debug)]
#[command(after_help = "\
A test leaves blocks behind that are live when its process ends: its locals are dropped by then. Of those that code of the \
workspace or of its dependencies allocated, `leaked` are the ones that nothing refers to but perhaps a thread that still runs; \
`unreported` are the ones that a static holds and no reporter covers. Blocks of the test harness do not count.

Examples:
  cargo memreport test
  cargo memreport test parser --fail-on leaked    exit status 1 if a test with `parser` in its name leaks
  cargo memreport test --test shop --release

The exit status is 1 if a test fails, or leaves behind what --fail-on names.")]
pub(crate) struct TestArgs {
    /// Only tests with this in their names
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
    /// Exit with status 1 if a test leaves such blocks behind
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND")]
    fail_on: Vec<Kind>,
    /// Show N places of each test
    #[arg(long, value_name = "N", default_value_t = 3)]
    top: usize,
    /// Only tests of the library
    #[arg(long, help_heading = CARGO)]
    lib: bool,
    /// Only tests of this binary
    #[arg(long, value_name = "NAME", help_heading = CARGO)]
    bin: Vec<OsString>,
    /// Only this integration test
    #[arg(long, value_name = "NAME", help_heading = CARGO)]
    test: Vec<OsString>,
    /// Flags of cargo.
    #[command(flatten)]
    build: BuildArgs,
}

/// A kind of blocks that are left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Blocks that nothing refers to
    Leaked,
    /// Blocks of statics that no reporter covers
    Unreported,
}

/// The numbers of tests by outcome.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    leaking: usize,
    unreporting: usize,
    unmeasured: usize,
}

impl TestArgs {
    /// Builds the tests, runs each, and prints what it leaves behind.
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let workspace = Workspace::read(&self.build)?;
        let packages = workspace.chosen(self.build.package.as_deref())?;
        let built = self.build.build(("test", "test"), &workspace, &packages, &self.targets())?;
        let mut measurer = Measurer::new(self.top)?;
        let mut tally = Tally::default();
        for built in built.into_iter().filter(|built| built.is_test) {
            let Some(package) = workspace.of_id(&built.package) else { continue };
            let binary = Binary { built, folder: package.folder().to_owned() };
            let tests = match binary.tests(self.filter.as_deref()) {
                Ok(tests) => tests,
                Err(problem) => {
                    writeln!(context.notes, "warning: {}: not run: {problem}", binary.name())?;
                    continue;
                }
            };
            if !tests.is_empty() {
                writeln!(context.out, "{}", binary.name())?;
            }
            for test in tests {
                let measured = measurer.measure(&binary, &test)?;
                tally.add(&measured);
                write_test(&test, &measured, self.top, &mut context.out)?;
                context.out.flush()?;
            }
        }
        if tally.passed + tally.failed == 0 {
            return Err(CargoError::NoProgram("test".into()).into());
        }
        tally.write(&mut context.out)?;
        let is_refused = self.fail_on.iter().any(|kind| match kind {
            Kind::Leaked => tally.leaking > 0,
            Kind::Unreported => tally.unreporting > 0,
        });
        let is_good = tally.failed == 0 && !is_refused && tally.unmeasured == 0;
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    /// Returns the words that choose the targets.
    fn targets(&self) -> Vec<&OsStr> {
        let mut words = vec![OsStr::new("--no-run")];
        words.extend(self.lib.then_some(OsStr::new("--lib")));
        for (flag, names) in [("--bin", &self.bin), ("--test", &self.test)] {
            words.extend(names.iter().flat_map(|name| [OsStr::new(flag), name]));
        }
        words
    }
}

impl Tally {
    fn add(&mut self, measured: &Measured) {
        *(if measured.end.is_none() { &mut self.passed } else { &mut self.failed }) += 1;
        match &measured.left {
            Ok(left) => {
                self.leaking += usize::from(!left.leaked.is_empty());
                self.unreporting += usize::from(!left.unreported.is_empty());
            }
            // The memory of a test that aborts is not measured, which is no further failure.
            Err(_) => self.unmeasured += usize::from(measured.end.is_none()),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Tally { passed, failed, leaking, unreporting, unmeasured } = self;
        write!(out, "\n{passed} passed, {failed} failed")?;
        write!(out, "; {leaking} leaked memory, {unreporting} left unreported memory")?;
        if *unmeasured > 0 {
            write!(out, ", {unmeasured} could not be measured")?;
        }
        writeln!(out)
    }
}

/// Writes a test: a line with its outcome, and the places of the blocks that it left behind.
fn write_test(test: &str, measured: &Measured, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let end = match &measured.end {
        None => "ok",
        Some(sentence) => sentence,
    };
    let left = match &measured.left {
        Ok(left) => left,
        Err(problem) => {
            writeln!(out, "  {test}: {end}; not measured: {problem}")?;
            return write_output(&measured.output, out);
        }
    };
    let kinds = [("leaked", &left.leaked), ("unreported", &left.unreported)];
    let amounts = kinds.iter().filter(|(_, places)| !places.is_empty()).map(|(kind, places)| {
        let sum = Left::sum(places);
        format!("{} {kind}", amount(sum.usable(), sum.blocks))
    });
    let amounts: Vec<String> = amounts.collect();
    let amounts =
        if amounts.is_empty() { "nothing left behind".into() } else { amounts.join(", ") };
    writeln!(out, "  {test}: {end}; {amounts}")?;
    for (kind, places) in kinds {
        for place in places.iter().take(top) {
            write_place(kind, place, out)?;
        }
        if places.len() > top {
            writeln!(out, "      … and {} more {kind} places", places.len() - top)?;
        }
    }
    if measured.end.is_some() { write_output(&measured.output, out) } else { Ok(()) }
}

/// Writes the output of a test that failed, as whole lines.
fn write_output(output: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(output)?;
    if output.ends_with(b"\n") { Ok(()) } else { writeln!(out) }
}

fn write_place(kind: &str, place: &Place, out: &mut dyn Write) -> io::Result<()> {
    let totals = place.totals;
    let what = place.site.block_type.describe();
    writeln!(out, "      {kind:<10} {}: {what}", amount(totals.usable(), totals.blocks))?;
    if let Some(frame) = place.site.own.as_ref().or(place.site.frames.first()) {
        writeln!(out, "                 {frame}")?;
    }
    if let Some(suggestion) = &place.suggestion {
        writeln!(out, "                 → {suggestion}")?;
    }
    Ok(())
}

fn amount(bytes: i128, blocks: i128) -> String {
    let (byte, block) =
        (if bytes == 1 { "byte" } else { "bytes" }, if blocks == 1 { "block" } else { "blocks" });
    format!("{} {byte} in {} {block}", commas(bytes), commas(blocks))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: TestArgs,
    }

    #[test]
    fn cargo_builds_the_targets_that_were_chosen() {
        for (words, expected) in [
            ("test", "--no-run"),
            ("test shop --lib", "--no-run --lib"),
            ("test --test a --bin b --lib --test c", "--no-run --lib --bin b --test a --test c"),
        ] {
            let args = Words::try_parse_from(words.split(' ')).unwrap().args;
            let found: Vec<_> =
                args.targets().into_iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(found.join(" "), expected);
        }
    }
}
