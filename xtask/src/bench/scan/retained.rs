//! `cargo xtask bench retained`: time and memory to compute retained sizes of a million blocks.
//!
//! Every figure comes from a process of its own, in release mode, so that the peak is that
//! process's.

use std::fs;
use std::io::{self, BufWriter, Write};
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
use crate::generate::random::Random;
use crate::scratch::Scratch;

/// The largest time from the file to the result, in seconds.
const SECONDS: f64 = 5.0;

/// Runs `cargo xtask bench retained [--quick]`. Returns `false` when a target is missed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    if let ["--child", file] = args {
        return child(file, out);
    }
    let is_quick = args.contains(&"--quick");
    let ours = build::release("xtask", "xtask")?;
    let scratch = Scratch::new()?;
    let (blocks, runs) = if is_quick { (100_000, 1) } else { (1_000_000, 3) };
    let (mut seconds, mut peaks) = (Vec::new(), Vec::new());
    for (name, links) in SHAPES {
        let file = scratch.0.join("scan.json");
        write_dump(&file, blocks, links)?;
        let name = format!("{name} of {blocks}");
        measure(&ours, &file, &name, runs, (&mut seconds, &mut peaks))?;
        fs::remove_file(&file)?;
    }
    match scan(&scratch.0) {
        Ok(file) => {
            let megabytes = fs::metadata(&file)?.len() / 1_000_000;
            let name = format!("the example's own, {megabytes} MB");
            measure(&ours, &file, &name, runs, (&mut seconds, &mut peaks))?;
        }
        Err(why) => seconds.push(Figure::not_run("the example's own", why.to_string())),
    }
    table("retained: seconds", &seconds, out)?;
    table("retained: peak of memory", &peaks, out)?;
    Ok(lines(&seconds, out)? & lines(&peaks, out)?)
}

type Figures<'f> = (&'f mut Vec<Figure>, &'f mut Vec<Figure>);

fn measure(
    ours: &Path,
    file: &Path,
    name: &str,
    runs: usize,
    (seconds, peaks): Figures<'_>,
) -> Result<(), Failure> {
    let (mut took, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let mut command = Process::new(ours);
        command.args(["bench", "retained", "--child"]).arg(file).stderr(Stdio::inherit());
        let output = command.output()?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        let number = |key: &str| answer[key].as_f64().ok_or(format!("{name}: no {key}"));
        took.push(number("seconds")?);
        memory.push(number("peak")?);
    }
    seconds.push(Figure::new(name, took).at_most(SECONDS, "s"));
    peaks.push(Figure::new(name, memory).at_most(None, "MB"));
    Ok(())
}

/// Computes the retained sizes in a process of its own, and prints its time and peak.
fn child(file: &str, out: &mut dyn Write) -> Result<bool, Failure> {
    let start = Instant::now();
    let cli = Cli::try_parse_from(["about-memory", "retained", file])?;
    cli.run(&mut Context::new(&mut io::sink(), &mut io::stderr()))
        .map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let peak = peak_of_this_process()? / 1024.0;
    writeln!(out, "{}", json!({ "seconds": seconds, "peak": peak }))?;
    Ok(true)
}

/// Writes a scan dump of the example program at work on this repository.
fn scan(folder: &Path) -> Result<PathBuf, Failure> {
    let subject = build::debug("memreport-tests", "fulltext")?;
    let report = folder.join("fulltext.json");
    let mut command = Process::new(subject);
    command.arg(build::root().join("dmd")).arg("--snapshot").arg(&report);
    let output = command.env("DMD", "--mode=scan").output()?;
    let dump = folder.join("fulltext.dmd.json");
    match dump.is_file() {
        true => Ok(dump),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// A function from a block to the blocks that it points at.
type Links = fn(block: u64, blocks: u64, random: &mut Random) -> Vec<u64>;

/// The shapes of the generated object graphs.
const SHAPES: [(&str, Links); 5] = [
    ("a chain", |block, blocks, _| (block + 1..blocks).take(1).collect()),
    ("a star", |block, blocks, _| if block == 0 { (1..blocks).collect() } else { Vec::new() }),
    // Deep, with two paths to every block.
    ("a ladder", |block, blocks, _| (block + 1..blocks).take(2).collect()),
    ("a ring", |block, blocks, _| vec![(block + 1) % blocks, (block + blocks - 1) % blocks]),
    ("at random", |_, blocks, random| (0..random.below(9)).map(|_| random.below(blocks)).collect()),
];

fn write_dump(path: &Path, blocks: u64, links: Links) -> io::Result<()> {
    let mut out = BufWriter::new(fs::File::create(path)?);
    let mut random = Random::new(1);
    // The first block can hold pointers to all others.
    let address = |block: u64| match block {
        0 => 0x1000,
        _ => 0x1_0000_0000 + block * 0x100,
    };
    write!(out, r#"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"scan"}},"blockList":["#)?;
    for block in 0..blocks {
        let links = links(block, blocks, &mut random);
        let (comma, bytes) = (if block == 0 { "" } else { "," }, links.len().max(2) * 8);
        let site = ["A", "B", "C"][usize::from(block % 7 == 0) + usize::from(block % 11 == 0)];
        write!(
            out,
            "{comma}\n{{\"req\":{bytes},\"addr\":\"{:x}\",\"alloc\":\"{site}\"",
            address(block)
        )?;
        let mut before = ",\"contents\":[";
        for link in &links {
            write!(out, "{before}\"{:x}\"", address(*link))?;
            before = ",";
        }
        write!(out, "{}}}", if links.is_empty() { "" } else { "]" })?;
    }
    let frames = r##""traceTable":{"A":["a"],"B":["b"],"C":["c"]},"frameTable":{"a":"#00: a (a.rs:1)","b":"#00: b (b.rs:2)","c":"#00: c (c.rs:3)"}"##;
    write!(out, "],{frames}}}")?;
    out.flush()
}
