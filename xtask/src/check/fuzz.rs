//! `cargo xtask fuzz [SECONDS] [TARGET…]`: the targets of `fuzz/` under libFuzzer.
//!
//! The instrumentation is that of cargo-fuzz without a sanitizer, which the stable compiler has.
//! Without a C++ compiler, which libFuzzer needs, damaged seeds are tried without regard to
//! coverage.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::build;
use crate::failure::Failure;
use crate::on_path;

/// The targets: folders of seeds, and programs of `fuzz/libfuzzer`.
const TARGETS: [&str; 9] =
    ["report", "dump", "recording", "census", "filter", "protocol", "module", "breakpad", "core"];

/// The seconds for each target, if none are given.
const SECONDS: u64 = 450;

/// The limits of an input, as options of libFuzzer.
const LIMITS: [&str; 4] =
    ["-timeout=10", "-rss_limit_mb=512", "-malloc_limit_mb=512", "-max_len=131072"];

/// The compiler's options for counters at each edge, which libFuzzer reads.
const COVERAGE: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// Runs targets, as many at once as there are processors.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let (seconds, chosen) = match args.first().and_then(|word| word.parse().ok()) {
        Some(seconds) => (seconds, &args[1..]),
        None => (SECONDS, args),
    };
    if let Some(unknown) = chosen.iter().find(|name| !TARGETS.contains(name)) {
        return Err(format!("no target {unknown}; there are {}", TARGETS.join(", ")).into());
    }
    let chosen = if chosen.is_empty() { &TARGETS[..] } else { chosen };
    let engine = Engine::build(out)?;
    let before = minutes_of_children();
    let queue = Mutex::new(chosen.iter());
    let rows = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // A guard in the condition of `while let` would live through the body.
                let next = || queue.lock().map_or(None, |mut queue| queue.next());
                while let Some(name) = next() {
                    let row = engine.run(name, seconds);
                    rows.lock().expect("no thread has panicked").push((*name, row));
                }
            });
        }
    });
    let rows = rows.into_inner().map_err(|_| "a thread has panicked")?;
    let mut all_hold = rows.len() == chosen.len();
    writeln!(out, "{:<10} {:>10}  {}", "target", "seconds", engine.columns())?;
    for (name, row) in rows {
        let row = row?;
        writeln!(out, "{name:<10} {:>10}  {}", row.seconds, row.text)?;
        all_hold &= row.holds;
    }
    let minutes = minutes_of_children() - before;
    writeln!(out, "{minutes:.1} minutes of processor time in all")?;
    writeln!(
        out,
        "{}",
        if all_hold { "no crash, no input over 10 s or 512 MiB" } else { "FAILED" }
    )?;
    Ok(all_hold)
}

/// Returns the processor time of this process's children that have ended, in minutes; 0 where the
/// kernel does not tell.
fn minutes_of_children() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    seconds_of_children(&text).unwrap_or(0.0) / 60.0
}

/// Reads `cutime` and `cstime` of `/proc/PID/stat`: proc(5).
fn seconds_of_children(stat: &str) -> Option<f64> {
    /// The kernel's unit in this file, on all systems with a libc.
    const TICKS: f64 = 100.0;
    // The name of the program may have blanks and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(13).map(|field| field.parse::<f64>().ok());
    Some((times.next()?? + times.next()??) / TICKS)
}

/// The result of a target.
struct Row {
    holds: bool,
    seconds: u64,
    /// The columns of the engine, or the end of what the target printed when it failed.
    text: String,
}

/// A way to run targets.
enum Engine {
    /// The folder of programs with libFuzzer in them.
    LibFuzzer(PathBuf),
    /// The driver of `fuzz/` itself.
    Driver(PathBuf),
}

impl Engine {
    fn build(out: &mut dyn Write) -> Result<Self, Failure> {
        if let Err(missing) = on_path::find(&["c++", "g++", "clang++"], "g++") {
            writeln!(out, "not run: libFuzzer: {missing}. Damaged seeds instead:")?;
            return Ok(Engine::Driver(build::release("memreport-fuzz", "memreport-fuzz")?));
        }
        let host = host()?;
        let folder = build::root().join("target/fuzz");
        let mut cargo = build::cargo();
        cargo.args(["build", "-q", "--release", "--target", &host]);
        cargo.args(["--manifest-path", "fuzz/libfuzzer/Cargo.toml"]);
        cargo.env("CARGO_TARGET_DIR", &folder).env("RUSTFLAGS", COVERAGE.join(" "));
        if !cargo.status()?.success() {
            return Err("the targets could not be built for libFuzzer".into());
        }
        Ok(Engine::LibFuzzer(folder.join(host).join("release")))
    }

    fn columns(&self) -> String {
        match self {
            Engine::LibFuzzer(_) => {
                format!("{:>10} {:>8} {:>8} {:>10}", "inputs", "corpus", "edges", "peak MiB")
            }
            Engine::Driver(_) => "inputs".to_owned(),
        }
    }

    fn run(&self, name: &str, seconds: u64) -> Result<Row, String> {
        let start = Instant::now();
        let done = match self {
            Engine::LibFuzzer(folder) => lib_fuzzer(&folder.join(name), name, seconds),
            Engine::Driver(program) => {
                Command::new(program).arg(name).arg(seconds.to_string()).output()
            }
        };
        let output = done.map_err(|error| format!("{name}: {error}"))?;
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let text = match self {
            _ if !output.status.success() => {
                let lines: Vec<&str> = text.lines().collect();
                lines[lines.len().saturating_sub(60)..].join("\n")
            }
            Engine::LibFuzzer(_) => statistics(&text),
            Engine::Driver(_) => text.trim_end().to_owned(),
        };
        Ok(Row { holds: output.status.success(), seconds: start.elapsed().as_secs(), text })
    }
}

/// Runs a program with libFuzzer in it. It begins with what earlier runs have found.
fn lib_fuzzer(program: &Path, name: &str, seconds: u64) -> std::io::Result<Output> {
    let folder = build::root().join("target/fuzz");
    let (corpus, failures) = (folder.join("corpus").join(name), folder.join("failures"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&failures)?;
    let mut command = Command::new(program);
    command.arg(&corpus).arg(build::root().join("fuzz/seeds").join(name));
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/{name}-", failures.display()));
    command.arg("-print_final_stats=1");
    command.stdin(Stdio::null()).output()
}

/// Returns the inputs, corpus, edges and peak memory from libFuzzer's output.
fn statistics(text: &str) -> String {
    let statistic = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("stat::{name}:")));
        line.map_or("?", str::trim).to_owned()
    };
    let last = text.lines().rfind(|line| line.contains(" cov: ")).unwrap_or_default();
    let word_after = |name: &str| {
        let mut words = last.split_whitespace().skip_while(|word| *word != name);
        words.nth(1).unwrap_or("?").to_owned()
    };
    let corpus = word_after("corp:");
    let corpus = corpus.split('/').next().unwrap_or("?");
    format!(
        "{:>10} {corpus:>8} {:>8} {:>10}",
        statistic("number_of_executed_units"),
        word_after("cov:"),
        statistic("peak_rss_mb")
    )
}

/// Returns the triple of this machine.
fn host() -> Result<String, Failure> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_ended_children_is_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 300 400 20 0 1 0 5";
        assert_eq!(seconds_of_children(stat), Some(7.0));
        assert_eq!(seconds_of_children("7"), None);
    }

    #[test]
    fn statistics_are_read_from_lib_fuzzers_output() {
        let text = "#9\tNEW    cov: 7 ft: 8 corp: 1/1b lim: 4\n\
            #1200\tDONE   cov: 345 ft: 678 corp: 90/12Kb lim: 4096 exec/s: 60 rss: 77Mb\n\
            stat::number_of_executed_units: 1200\nstat::peak_rss_mb:              78\n";
        assert_eq!(
            statistics(text).split_whitespace().collect::<Vec<_>>(),
            ["1200", "90", "345", "78"]
        );
        assert_eq!(statistics("").split_whitespace().collect::<Vec<_>>(), ["?"; 4]);
    }

    #[test]
    fn every_target_has_seeds_and_a_program() {
        let fuzz = build::root().join("fuzz");
        let folders = fs::read_dir(fuzz.join("seeds")).expect("it is in the repository").count();
        assert_eq!(folders, TARGETS.len(), "a target is not in the list");
        for name in TARGETS {
            assert!(fuzz.join("seeds").join(name).is_dir(), "{name}");
            assert!(fuzz.join("libfuzzer/fuzz_targets").join(name).with_extension("rs").is_file());
        }
    }
}
