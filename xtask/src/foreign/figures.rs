//! The figures of each command, and the table of them.

use std::io::{BufRead, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::Bench;
use super::subject::{Counter, Subject, Tracking, Truth};
use crate::failure::Failure;

/// The most bytes in blocks that belong to a request: its threads, its text and its connection.
const REQUEST: i64 = 4096;

/// The most blocks of a request, or of the recorder.
const REQUEST_BLOCKS: i64 = 32;

/// Resident bytes of a request: its pages of the stack, the heap and files.
const RESIDENT: i64 = 128 * 1024;

/// A figure that a command printed, and the truth in the meantime.
pub(super) struct Figure {
    command: &'static str,
    name: &'static str,
    printed: i64,
    truth: RangeInclusive<i64>,
    /// The command states that blocks were freed meanwhile and are left out.
    is_stated: bool,
}

impl Figure {
    fn new(
        command: &'static str,
        name: &'static str,
        printed: i64,
        truth: RangeInclusive<i64>,
    ) -> Self {
        Self { command, name, printed, truth, is_stated: false }
    }

    /// Makes a figure of a report, which leaves out the blocks of the request itself.
    fn of_report(command: &'static str, name: &'static str, printed: i64, truth: &Truth) -> Self {
        let usable = truth.of(Counter::Usable);
        // The report leaves out what is freed during the collection, and notes more than 0.5 %.
        let unstated = REQUEST.max(printed / 200);
        Self::new(command, name, printed, usable.start() - unstated..=*usable.end())
    }

    /// Returns the distance from the range of the truth.
    fn distance(&self) -> i64 {
        (self.truth.start() - self.printed).max(self.printed - self.truth.end()).max(0)
    }

    /// Notes whether the output states that blocks were freed meanwhile.
    fn stated(mut self, output: &str) -> Self {
        self.is_stated = output.contains("were freed during the collection");
        self
    }

    fn is_wrong(&self) -> bool {
        self.distance() > 0 && !self.is_stated
    }
}

/// Writes a table. Returns the number of wrong figures.
pub(super) fn write(
    title: &str,
    figures: &[Figure],
    out: &mut dyn Write,
) -> Result<usize, Failure> {
    writeln!(out, "\n{title}")?;
    writeln!(out, "  {:36} {:>13} {:>13} {:>13}", "", "printed", "truth from", "to")?;
    for figure in figures {
        let verdict = match figure.distance() {
            0 => String::new(),
            distance if figure.is_stated => format!("  {distance} less, as stated"),
            distance => format!("  WRONG by {distance}"),
        };
        writeln!(
            out,
            "  {:36} {:>13} {:>13} {:>13}{verdict}",
            format!("{}: {}", figure.command, figure.name),
            figure.printed,
            figure.truth.start(),
            figure.truth.end()
        )?;
    }
    Ok(figures.iter().filter(|figure| figure.is_wrong()).count())
}

/// Returns the figures of commands that ask a running program.
pub(super) fn of_running(bench: &Bench, subject: &mut Subject) -> Result<Vec<Figure>, Failure> {
    let pid = subject.pid();
    let mut figures = ps(bench, subject)?;
    let show = || json(bench.about_memory().args([&pid, "--json"]));
    let (shown, truth) = subject.during(show)?;
    figures.push(heap_allocated("show", &shown, &truth)?);
    figures.extend(snapshot(bench, subject)?);
    figures.extend(resident(bench, subject)?);
    Ok(figures)
}

fn ps(bench: &Bench, subject: &Subject) -> Result<Vec<Figure>, Failure> {
    let (list, truth) =
        subject.during(|| json(bench.about_memory().args(["ps", "--json", "--timeout", "30"])))?;
    let rows = list.as_array().into_iter().flatten();
    let mut rows = rows.filter(|row| row["pid"].as_u64() == Some(subject.id()));
    let row = rows.next().ok_or("`ps` does not list the program")?;
    let number = |name: &str| row[name].as_i64().ok_or_else(|| format!("`ps` has no {name}"));
    Ok(vec![
        Figure::new("ps", "heap", number("heapAllocated")?, truth.of(Counter::Usable)),
        Figure::new("ps", "blocks", number("heapBlocks")?, truth.of(Counter::Blocks)),
        Figure::of_report("ps", "unclassified", number("heapUnclassified")?, &truth)
            .stated(&row["notes"].to_string()),
        Figure::new(
            "ps",
            "resident",
            number("resident")?,
            around(truth.resident.clone(), RESIDENT),
        ),
    ])
}

/// Returns the figures of a snapshot, and of each command that reads its dump.
fn snapshot(bench: &Bench, subject: &Subject) -> Result<Vec<Figure>, Failure> {
    let pid = subject.pid();
    let has_dump = subject.tracking != Tracking::Never;
    let mut command = bench.about_memory();
    command.args(["snapshot", &pid, "-o", "heap.json.gz"]).args(has_dump.then_some("--dump"));
    let ((), truth) = subject.during(|| output(&mut command).map(drop))?;
    let shown = json(bench.about_memory().args(["heap.json.gz", "--json"]))?;
    let mut figures = vec![heap_allocated("snapshot", &shown, &truth)?];
    if !has_dump {
        return Ok(figures);
    }
    let dump = "heap.dmd.json.gz";
    let tree = json(bench.about_memory().args(["heap", "tree", dump, "--min", "100", "--json"]))?;
    let number =
        |value: &Value, name: &str| value.as_i64().ok_or_else(|| format!("the dump has no {name}"));
    let all = number(&tree["bytes"], "bytes")?;
    let allocated = number(&tree["accounts"]["heapAllocated"], "heapAllocated")?;
    figures.push(
        Figure::of_report("heap tree", "heap-allocated", allocated, &truth)
            .stated(&shown["notes"].to_string()),
    );
    figures.push(Figure::new("heap tree", "all blocks", all, allocated..=allocated));
    let coverage = json(bench.about_memory().args(["heap", "coverage", dump, "--json"]))?;
    let covered = number(&coverage["heap"]["bytes"], "bytes of coverage")?;
    let left_out = number(&coverage["leftOutBytes"], "bytes that coverage leaves out")?;
    figures.push(Figure::new(
        "heap coverage",
        "all blocks",
        covered + left_out,
        allocated..=allocated,
    ));
    let census =
        json(bench.about_memory().args(["heap", "census", dump, "--by", "type", "--json"]))?;
    let counted = leaves(&census);
    figures.push(Figure::new("heap census", "all groups", counted, allocated..=allocated));
    Ok(figures)
}

/// Returns the bytes of all groups of a census.
fn leaves(census: &Value) -> i64 {
    if let Some(bytes) = census["bytes"].as_i64() {
        return bytes;
    }
    census.as_object().map_or(0, |groups| groups.values().map(leaves).sum())
}

/// Returns the figures of `explain-rss`.
fn resident(bench: &Bench, subject: &Subject) -> Result<Vec<Figure>, Failure> {
    let pid = subject.pid();
    let explain = || output(bench.about_memory().args(["explain-rss", &pid]));
    let (explained, truth) = subject.during(explain)?;
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    // A note is wrapped at the width of the terminal.
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // A line is a sign, a name, and an amount: `+ program file   4,800,512 B  /proc/self/smaps`.
    let amount = |name: &str| -> Result<i64, Failure> {
        let line =
            text.lines().find(|line| line.trim_start_matches(['=', '+', ' ']).starts_with(name));
        let line = line.ok_or_else(|| format!("`explain-rss` has no line `{name}`"))?;
        let amounts = line.split_whitespace().map(|word| word.replace(',', ""));
        let mut amounts = amounts.filter_map(|word| word.parse().ok());
        Ok(amounts.next().ok_or_else(|| format!("no amount in {line:?}"))?)
    };
    // A line of 0 bytes is left out.
    let or_zero = |name: &str| amount(name).unwrap_or(0);
    let in_use =
        amount("heap-allocated by reporter")? + or_zero("bookkeeping") + or_zero("C's own heap");
    Ok(vec![
        Figure::new(
            "explain-rss",
            "resident",
            amount("resident by kind")?,
            around(truth.resident.clone(), RESIDENT),
        ),
        Figure::of_report(
            "explain-rss",
            "heap-allocated",
            amount("heap-allocated by reporter")?,
            &truth,
        )
        .stated(&unwrapped),
        Figure::new(
            "explain-rss",
            "in use by mallinfo2",
            in_use,
            around(in_use_of(&truth), REQUEST),
        ),
    ])
}

/// Returns the range of glibc's account, which is read every few milliseconds. Between two readings
/// it goes as far down and up as the counted blocks.
fn in_use_of(truth: &Truth) -> RangeInclusive<i64> {
    let (read, counted) = (truth.of(Counter::InUse), truth.of(Counter::Usable));
    *read.start().min(counted.start())..=*read.end().max(counted.end())
}

/// The values that a program prints at its end.
struct End {
    usable: i64,
    highest: i64,
    allocated: i64,
    blocks: i64,
}

impl End {
    fn of(output: &Output) -> Result<Self, Failure> {
        let line =
            output.stdout.lines().map_while(Result::ok).find(|line| line.starts_with("end "));
        let line = line.ok_or("the program printed no counters at its end")?;
        let values: Vec<i64> = line.split(' ').skip(1).map(str::parse).collect::<Result<_, _>>()?;
        let [usable, highest, allocated, blocks] = values[..] else {
            return Err(format!("four counters were expected: {line}").into());
        };
        Ok(Self { usable, highest, allocated, blocks })
    }
}

/// Returns the figures of `run` and `record`, which see a program from its start to its end.
pub(super) fn of_whole_runs(bench: &Bench, program: &Path) -> Result<Vec<Figure>, Failure> {
    let folder = bench.file("run");
    let mut command = bench.about_memory();
    command.args(["run", "-o"]).arg(&folder).arg("--").arg(program).arg("3");
    let end = End::of(&output(&mut command)?)?;
    let mut reports = std::fs::read_dir(&folder)?.map_while(Result::ok).map(|entry| entry.path());
    let report = reports.find(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.ends_with(".json") && !name.ends_with(".dmd.json"))
    });
    let report = report.ok_or("`run` kept no report")?;
    let shown = json(bench.about_memory().arg(report).arg("--json"))?;
    std::fs::remove_dir_all(&folder)?;
    let usable = around(near(end.usable), REQUEST);
    let figure = Figure::new("run", "heap-allocated", allocated(&shown)?, usable);
    let mut figures = vec![figure.stated(&shown["notes"].to_string())];
    let file = bench.file("recording.gz");
    let mut command = bench.about_memory();
    command.args(["record", "-o"]).arg(&file).arg("--").arg(program).arg("3");
    let end = End::of(&output(command.env("DMD", "--mode=live"))?)?;
    let recording = json(bench.about_memory().arg("recording").arg(&file).arg("--json"))?;
    let number = |path: &str| {
        let value = recording.pointer(path).and_then(Value::as_f64);
        #[expect(clippy::cast_possible_truncation, reason = "whole numbers far below 2^53")]
        value.map(|value| value as i64).ok_or_else(|| format!("the recording has no {path}"))
    };
    figures.extend([
        Figure::new("record", "lost", number("/lost")?, 0..=0),
        Figure::new(
            "record",
            "at the end",
            number("/retained/bytes")?,
            around(near(end.usable), REQUEST),
        ),
        Figure::new(
            "record",
            "blocks at the end",
            number("/retained/blocks")?,
            around(near(end.blocks), REQUEST_BLOCKS),
        ),
        Figure::new("record", "peak", number("/peak/live")?, near(end.highest)),
        Figure::new("record", "all allocated", number("/allocated/bytes")?, near(end.allocated)),
    ]);
    Ok(figures)
}

/// Returns the range around a truth that was read at almost the same moment as the figure.
fn near(truth: i64) -> RangeInclusive<i64> {
    around(truth..=truth, truth / 1000)
}

fn around(truth: RangeInclusive<i64>, distance: i64) -> RangeInclusive<i64> {
    truth.start() - distance..=truth.end() + distance
}

fn heap_allocated(command: &'static str, shown: &Value, truth: &Truth) -> Result<Figure, Failure> {
    let figure = Figure::of_report(command, "heap-allocated", allocated(shown)?, truth);
    Ok(figure.stated(&shown["notes"].to_string()))
}

/// Returns `heap-allocated` of a report as JSON.
fn allocated(shown: &Value) -> Result<i64, Failure> {
    find(shown, "heap-allocated").ok_or_else(|| "the report has no heap-allocated".into())
}

/// Returns the amount of the first node with this name.
fn find(value: &Value, name: &str) -> Option<i64> {
    match value {
        Value::Object(node) if node.get("name").is_some_and(|given| given == name) => {
            node.get("amount").and_then(Value::as_i64)
        }
        Value::Object(node) => node.values().find_map(|value| find(value, name)),
        Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

fn json(command: &mut Command) -> Result<Value, Failure> {
    let printed = output(command)?.stdout;
    serde_json::from_slice(&printed).map_err(|error| format!("{command:?}: {error}").into())
}

/// Runs a command and returns what it wrote.
fn output(command: &mut Command) -> Result<Output, Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let mut words = String::from_utf8_lossy(&output.stderr).into_owned();
    words.truncate(2000);
    Err(format!("{command:?}: {}: {words}", output.status).into())
}
