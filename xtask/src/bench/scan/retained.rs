//! `cargo xtask bench retained`: time and memory to compute retained sizes of a million blocks.
//!
//! Every figure comes from a process of its own, in release mode, so that the peak is that
//! process's. The scans are those that programs with DMD save.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::Instant;

use about_memory::{Cli, Context};
use clap::Parser;
use serde_json::{Value, json};

use crate::bench::figure::{Figure, lines, table};
use crate::bench::process::peak_of_this_process;
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The largest time from the file to the result, in seconds.
const SECONDS: f64 = 2.0;

/// The shapes that the program `graph` knows.
const SHAPES: [&str; 5] = ["chain", "star", "ladder", "ring", "random"];

/// Runs `cargo xtask bench retained [--quick]`. Returns `false` when a target is missed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    if let ["--child", file] = args {
        return child(file, out);
    }
    let (scale, runs) = if args.contains(&"--quick") { (10, 1) } else { (1, 3) };
    let ours = build::release("xtask", "xtask")?;
    let scratch = Scratch::new()?;
    let mut figures = Figures::default();
    let graph = build::release("memreport-tests", "graph")?;
    let blocks = (1_000_000 / scale).to_string();
    for shape in SHAPES {
        let dump = scan(Process::new(&graph).args([shape, &blocks]), &scratch.0)?;
        figures.measure(&ours, &dump, shape, runs)?;
    }
    let lists = build::release("memreport-tests", "lists")?;
    let blocks = (3_000_000 / scale).to_string();
    let dump = scan(Process::new(lists).arg(&blocks), &scratch.0)?;
    figures.measure(&ours, &dump, "lists", runs)?;
    let fulltext = build::debug("memreport-tests", "fulltext")?;
    let dump =
        scan(Process::new(fulltext).arg(build::root().join("dmd")).arg("--snapshot"), &scratch.0)?;
    figures.measure(&ours, &dump, "the example's own", runs)?;
    let Figures { seconds, peaks, shares } = figures;
    table("retained: seconds", &seconds, out)?;
    table("retained: peak of memory", &peaks, out)?;
    table("retained: peak of memory, of the dump", &shares, out)?;
    Ok(lines(&seconds, out)? & lines(&peaks, out)? & lines(&shares, out)?)
}

#[derive(Default)]
struct Figures {
    seconds: Vec<Figure>,
    peaks: Vec<Figure>,
    shares: Vec<Figure>,
}

impl Figures {
    fn measure(
        &mut self,
        ours: &Path,
        file: &Path,
        name: &str,
        runs: usize,
    ) -> Result<(), Failure> {
        let megabytes = fs::metadata(file)?.len() as f64 / 1e6;
        let name = format!("{name}, {megabytes:.0} MB");
        let (mut took, mut peaks) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let mut command = Process::new(ours);
            command.args(["bench", "retained", "--child"]).arg(file).stderr(Stdio::inherit());
            let output = command.output()?;
            let answer: Value = serde_json::from_slice(&output.stdout)?;
            let number = |key: &str| answer[key].as_f64().ok_or(format!("{name}: no {key}"));
            took.push(number("seconds")?);
            peaks.push(number("peak")?);
        }
        let shares = peaks.iter().map(|peak| peak / megabytes).collect();
        self.seconds.push(Figure::new(&name, took).at_most(SECONDS, "s"));
        self.peaks.push(Figure::new(&name, peaks).at_most(None, "MB"));
        self.shares.push(Figure::new(&name, shares).at_most(None, "x"));
        // Otherwise the next program's failure would go unnoticed.
        fs::remove_file(file)?;
        Ok(())
    }
}

/// Computes the retained sizes in a process of its own, and prints its time and peak.
fn child(file: &str, out: &mut dyn Write) -> Result<bool, Failure> {
    let start = Instant::now();
    let cli = Cli::try_parse_from(["about-memory", "heap", "dominators", file])?;
    cli.run(&mut Context::new(&mut io::sink(), &mut io::stderr()))
        .map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let peak = peak_of_this_process()? * 1024.0 / 1e6;
    writeln!(out, "{}", json!({ "seconds": seconds, "peak": peak }))?;
    Ok(true)
}

/// Runs a program that takes a report's path as its last argument, and returns its scan.
fn scan(program: &mut Process, folder: &Path) -> Result<PathBuf, Failure> {
    let (report, dump) = (folder.join("scan.json"), folder.join("scan.dmd.json"));
    let output = program.arg(report).env("DMD", "--mode=scan").output()?;
    match output.status.success() && dump.is_file() {
        true => Ok(dump),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}
