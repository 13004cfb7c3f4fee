//! `cargo xtask bench show`: time and memory to show reports, beside a plain `serde_json::Value`.
//!
//! Every figure comes from a process of its own, in release mode, with a fresh heap and its own
//! peak.

use super::process::peak_of_this_process;
use crate::build;
use crate::failure::Failure;
use crate::generate::random::Random;
use crate::generate::reports;
use about_memory::{Cli, Context};
use clap::Parser;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The options of the benchmark.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Options {
    /// A tenth of the reports, and fewer runs
    #[arg(long)]
    quick: bool,
    /// A capture to show, in place of a generated one of realistic size
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Internal: the work of this process, and its file
    #[arg(long, hide = true, num_args = 2, value_names = ["WHAT", "FILE"])]
    child: Option<Vec<String>>,
}

/// The release builds that are measured.
struct Programs {
    about_memory: PathBuf,
    xtask: PathBuf,
}

/// One figure with its target.
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    target: f64,
}

/// Runs the benchmark. Returns `false` when a target is missed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let options = Options::try_parse_from(args)?;
    if let Some([what, file]) = options.child.as_deref() {
        return child(what, file, out);
    }
    let programs = Programs {
        about_memory: build::release("about-memory", "about-memory")?,
        xtask: build::release("xtask", "xtask")?,
    };
    let directory = std::env::temp_dir().join(format!("about-memory-bench-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let figures = measure(&options, &programs, &directory);
    fs::remove_dir_all(&directory)?;
    let figures = figures?;
    writeln!(out, "{:<44} {:>10} {:>10}", "figure", "measured", "target")?;
    for Figure { name, value, unit, target } in &figures {
        let verdict = if value <= target { "" } else { "  missed" };
        writeln!(out, "{name:<44} {value:>7.2} {unit:<2} {target:>7.2} {unit:<2}{verdict}")?;
    }
    for Figure { name, value, unit, target } in &figures {
        writeln!(
            out,
            "{}",
            json!({"bench": "show", "figure": name, "value": value, "unit": unit, "target": target})
        )?;
    }
    Ok(figures.iter().all(|figure| figure.value <= figure.target))
}

fn measure(
    options: &Options,
    programs: &Programs,
    directory: &Path,
) -> Result<Vec<Figure>, Failure> {
    let runs = if options.quick { 3 } else { 5 };
    let (large, deep, capture) = (
        directory.join("large.json"),
        directory.join("deep.json"),
        directory.join("capture.json.gz"),
    );
    let scale = if options.quick { 10 } else { 1 };
    write_large(&large, 1_000_000 / scale)?;
    write_deep(&deep, 100_000 / scale)?;
    let mut figures = Vec::new();
    for (file, time, memory) in [
        (&large, "1 M reports, time beside a Value", "1 M reports, peak beside a Value"),
        (&deep, "400 levels deep, time beside a Value", "400 levels deep, peak beside a Value"),
    ] {
        let value = best(&programs.xtask, "value", file, runs)?;
        let ours = best(&programs.xtask, "show", file, runs)?;
        figures.push(Figure { name: time, value: ours.0 / value.0, unit: "x", target: 2.0 });
        figures.push(Figure { name: memory, value: ours.1 / value.1, unit: "x", target: 1.0 });
        fs::remove_file(file)?;
    }
    let shown = match &options.capture {
        Some(file) => file,
        None => {
            write_capture(&capture)?;
            &capture
        }
    };
    let value = whole_process(&programs.about_memory, shown, if options.quick { 5 } else { 20 })?;
    figures.push(Figure {
        name: "a capture of Firefox, whole process",
        value,
        unit: "ms",
        target: 60.0,
    });
    Ok(figures)
}

/// Returns the least time in seconds and the least peak in KiB.
fn best(xtask: &Path, what: &str, file: &Path, runs: usize) -> Result<(f64, f64), Failure> {
    let mut least = (f64::INFINITY, f64::INFINITY);
    for _ in 0..runs {
        let mut command = Command::new(xtask);
        let output = command
            .args(["bench", "show", "--child", what])
            .arg(file)
            .stderr(Stdio::inherit())
            .output()?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        let number = |key: &str| answer[key].as_f64().ok_or(format!("{what}: no {key}"));
        least = (least.0.min(number("seconds")?), least.1.min(number("peak")?));
    }
    Ok(least)
}

/// Returns the least wall time of the whole process, in milliseconds.
fn whole_process(about_memory: &Path, file: &Path, runs: usize) -> Result<f64, Failure> {
    let mut least = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        let status = Command::new(about_memory).arg(file).stdout(Stdio::null()).status()?;
        least = least.min(start.elapsed().as_secs_f64() * 1000.0);
        if !status.success() {
            return Err("about-memory failed".into());
        }
    }
    Ok(least)
}

/// Reads the file in one of two ways in this process, and prints its time and peak.
fn child(what: &str, file: &str, out: &mut dyn Write) -> Result<bool, Failure> {
    let start = Instant::now();
    let seconds = match what {
        "value" => {
            let value: Value = serde_json::from_slice(&fs::read(file)?)?;
            let seconds = start.elapsed().as_secs_f64();
            std::hint::black_box(&value);
            seconds
        }
        _ => {
            let cli = Cli::try_parse_from(["about-memory", file])?;
            let mut out = BufWriter::new(io::sink());
            cli.run(&mut Context::new(&mut out, &mut io::stderr()))
                .map_err(|error| error.to_string())?;
            start.elapsed().as_secs_f64()
        }
    };
    writeln!(out, "{}", json!({"seconds": seconds, "peak": peak_of_this_process()?}))?;
    Ok(true)
}

/// A writer of report files, one report at a time.
struct Reports<W: Write> {
    out: W,
    is_first: bool,
}

impl<W: Write> Reports<W> {
    fn new(mut out: W) -> io::Result<Self> {
        write!(out, "{{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [")?;
        Ok(Reports { out, is_first: true })
    }

    fn add(&mut self, report: &Value) -> io::Result<()> {
        let separator = if self.is_first { "\n" } else { ",\n" };
        self.is_first = false;
        write!(self.out, "{separator}{report}")
    }

    fn end(mut self) -> io::Result<W> {
        write!(self.out, "]}}")?;
        Ok(self.out)
    }
}

/// Writes reports with distinct paths: 20 processes of 400 branches, up to 20 levels deep.
fn write_large(path: &Path, count: usize) -> io::Result<()> {
    let mut reports = Reports::new(BufWriter::new(fs::File::create(path)?))?;
    let mut random = Random::new(1);
    for index in 0..count {
        let process = format!("server {0} (pid {0})", index / (count / 20).max(1));
        let branch = random.index(400);
        let levels: String = (0..branch % 20).map(|level| format!("level{level}/")).collect();
        let path = format!("explicit/branch{branch}/{levels}leaf{index}");
        let amount = random.up_to_bits(24);
        reports.add(&reports::report(&process, &path, 1, 0, amount))?;
    }
    reports.end()?.flush()
}

/// Writes 400 paths for each of up to 20 processes, each a level deeper than the last and reported
/// 12 times or more.
fn write_deep(path: &Path, count: usize) -> io::Result<()> {
    let mut reports = Reports::new(BufWriter::new(fs::File::create(path)?))?;
    let mut random = Random::new(2);
    let processes = (count / 5000).clamp(1, 20);
    for index in 0..count {
        let process = format!("server {} (pid 1)", index % processes);
        let path = format!("explicit/{}leaf", "n/".repeat(index / processes % 400));
        reports.add(&reports::report(&process, &path, 1, 0, random.up_to_bits(24)))?;
    }
    reports.end()?.flush()
}

/// Writes the number of reports that a Firefox with a dozen processes makes.
fn write_capture(path: &Path) -> io::Result<()> {
    let gzip = GzEncoder::new(BufWriter::new(fs::File::create(path)?), Compression::default());
    let mut reports = Reports::new(gzip)?;
    let mut random = Random::new(3);
    for process in 0..12 {
        for report in (0..60).flat_map(|_| reports::capture(&mut random)).take(1500) {
            let process = format!("{} {process}", report["process"].as_str().unwrap_or("web"));
            let mut report = report;
            report["process"] = process.into();
            reports.add(&report)?;
        }
    }
    reports.end()?.finish()?.flush()
}
