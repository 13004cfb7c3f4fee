//! `cargo xtask stress leaks [N]`: N programs with known leaks and N without, read by
//! `about-memory tree` and, where the nightly toolchain is installed, by `LeakSanitizer`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

const SOURCE: &str = "tests/src/bin/leaks.rs";

/// Leaked blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Leaks {
    blocks: u64,
    bytes: u64,
}

/// The sums of one tool over all programs.
#[derive(Debug, Default)]
struct Row {
    planted: Leaks,
    found: Leaks,
    /// Programs of which the tool says something else than was planted.
    wrong: u64,
    /// Those of them of which it says more.
    false_alarms: u64,
}

impl Row {
    fn add(&mut self, planted: Leaks, found: Leaks) {
        self.wrong += u64::from(planted != found);
        self.false_alarms += u64::from(found.bytes > planted.bytes);
        for (sum, one) in [(&mut self.planted, planted), (&mut self.found, found)] {
            sum.blocks += one.blocks;
            sum.bytes += one.bytes;
        }
    }
}

/// Runs the programs. Returns `false` if `tree` says something else than was planted.
pub(super) fn run(count: Option<&str>, out: &mut dyn Write) -> Result<bool, Failure> {
    let count: u64 = count.unwrap_or("200").parse()?;
    let subject = build::release("memreport-tests", "leaks")?;
    let about_memory = build::release("about-memory", "about-memory")?;
    let scratch = Scratch::new()?;
    let sanitized = under_sanitizer(&scratch);
    writeln!(
        out,
        "{:<14} {:<15} {:>8} {:>9} {:>8} {:>9} {:>6} {:>5}",
        "tool", "programs", "planted", "bytes", "found", "bytes", "differ", "more"
    )?;
    let mut holds = true;
    for (kind, words) in [("with leaks", &[][..]), ("without", &["none"])] {
        let mut row = Row::default();
        for seed in 1..=count {
            let (planted, found) = by_tree(&subject, &about_memory, seed, words)?;
            row.add(planted, found);
        }
        // An old word on a stack may hide a structure, but nothing that is held is leaked.
        holds &= row.false_alarms == 0 && row.found.bytes * 100 >= row.planted.bytes * 99;
        write(out, "tree", kind, count, &row)?;
        match &sanitized {
            Ok(program) => {
                let mut row = Row::default();
                for seed in 1..=count {
                    let (planted, found) = by_sanitizer(program, seed, words)?;
                    row.add(planted, found);
                }
                write(out, "LeakSanitizer", kind, count, &row)?;
            }
            Err(reason) => writeln!(out, "LeakSanitizer: not run: {reason}")?,
        }
    }
    writeln!(out, "{}", if holds { "all of it holds" } else { "FAILED" })?;
    Ok(holds)
}

fn write(
    out: &mut dyn Write,
    tool: &str,
    kind: &str,
    count: u64,
    row: &Row,
) -> Result<(), Failure> {
    let Row { planted, found, wrong, false_alarms } = row;
    let programs = format!("{count} {kind}");
    Ok(writeln!(
        out,
        "{tool:<14} {programs:<15} {:>8} {:>9} {:>8} {:>9} {wrong:>6} {false_alarms:>5}",
        planted.blocks, planted.bytes, found.blocks, found.bytes
    )?)
}

/// Builds the program with `LeakSanitizer`.
fn under_sanitizer(scratch: &Scratch) -> Result<PathBuf, Failure> {
    let program = scratch.0.join("leaks");
    let mut rustc = build::nightly(&["rustc", "-O", "-Zsanitizer=leak", "--edition", "2024"]);
    let output = rustc.arg(build::root().join(SOURCE)).arg("-o").arg(&program).output()?;
    match output.status.success() {
        true => Ok(program),
        false => Err("the nightly toolchain is missing: rustup toolchain install nightly".into()),
    }
}

/// Returns the planted blocks with their usable bytes, and those that `tree` calls leaked.
fn by_tree(
    subject: &Path,
    about_memory: &Path,
    seed: u64,
    words: &[&str],
) -> Result<(Leaks, Leaks), Failure> {
    let mut command = Command::new(subject);
    command.arg(seed.to_string()).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.spawn()?;
    let mut line = String::new();
    BufReader::new(program.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let tree =
        Command::new(about_memory).args(["tree", "--json", &program.id().to_string()]).output();
    drop(program.stdin.take());
    program.wait()?;
    let tree: Value = serde_json::from_slice(&tree?.stdout)?;
    let mut found = Leaks::default();
    for row in tree["rows"].as_array().into_iter().flatten().filter(|row| row["is"] == "leaked") {
        found.blocks += blocks_of(row);
        found.bytes += row["bytes"].as_u64().unwrap_or(0);
    }
    let [blocks, _, usable] = numbers(&line)?;
    Ok((Leaks { blocks, bytes: usable }, found))
}

/// Returns the blocks of a row and of all rows below it.
fn blocks_of(row: &Value) -> u64 {
    let below = row["children"].as_array().into_iter().flatten().map(blocks_of);
    row["blocks"].as_u64().unwrap_or(0) + below.sum::<u64>()
}

/// Returns the planted blocks with their requested bytes, and those that `LeakSanitizer` reports
/// when the program ends.
fn by_sanitizer(program: &Path, seed: u64, words: &[&str]) -> Result<(Leaks, Leaks), Failure> {
    let output =
        Command::new(program).arg(seed.to_string()).args(words).stdin(Stdio::null()).output()?;
    let [blocks, bytes, _] = numbers(&String::from_utf8_lossy(&output.stdout))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let summary = errors.lines().find(|line| line.starts_with("SUMMARY: LeakSanitizer: "));
    let found = summary.map_or(Ok(Leaks::default()), |line| {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [bytes, blocks] => Ok(Leaks { blocks, bytes }),
            _ => Err(Failure::from(format!("LeakSanitizer says: {line}"))),
        }
    })?;
    Ok((Leaks { blocks, bytes }, found))
}

/// Returns the numbers that the program prints: blocks, requested and usable bytes.
fn numbers(line: &str) -> Result<[u64; 3], Failure> {
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("the program printed: {line}").into())
}
