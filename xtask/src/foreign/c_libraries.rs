//! `cargo xtask foreign c-libraries [--quick]`: a program that declares DMD, around sqlite, zstd,
//! openssl and rocksdb, run under `about-memory run --c-heap`.
//!
//! The tracker's counters must be equal to the blocks that `inspect` finds in glibc's heap, and
//! with their headers to `mallinfo2`; each block of the dump must be one of them, and there once.
//! The program must print the same as alone. It is built for dev and release; `--quick` leaves the
//! release build out.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Bench;
use crate::build;
use crate::failure::Failure;

/// A library by the beginnings of its functions' names, or by its file.
const LIBRARIES: [(&str, &[&str]); 4] = [
    ("sqlite", &["sqlite3", "pcache1", "memdb"]),
    ("zstd", &["ZSTD", "POOL_", "HUF_"]),
    ("openssl", &["libcrypto", "libssl"]),
    ("rocksdb", &["rocksdb"]),
];

/// The rounds of work before the program is looked at.
const ROUNDS: usize = 3;

/// The time in which the server frees what an answer took.
const ANSWERED: Duration = Duration::from_secs(1);

/// The most blocks of the tracker and its server, which are in no dump.
const OWN_BLOCKS: usize = 64;

/// Runs the check. Returns `false` when the books do not balance.
pub(super) fn run(is_quick: bool, bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let mut holds = true;
    let profiles: &[&str] = if is_quick { &["dev"] } else { &["dev", "release"] };
    for profile in profiles {
        let program = program(profile)?;
        writeln!(out, "\n{profile}, sqlite, zstd, openssl and rocksdb beside Rust")?;
        let alone = Running::start(Command::new(&program).arg(bench.file("alone")))?.end()?;
        let mut command = bench.about_memory();
        command.env("DMD", "--mode=scan").args(["run", "--c-heap", "-o"]).arg(bench.file("saved"));
        command.arg("--").arg(&program).arg(bench.file("tracked"));
        let mut running = Running::start(&mut command)?;
        holds &= Seen::of(&mut running, bench)?.write(out)?;
        let is_same = running.end()? == alone;
        holds &= is_same;
        writeln!(out, "  the same output and exit status as alone: {}", yes(is_same))?;
    }
    writeln!(out, "{}", if holds { "all of it holds" } else { "FAILED" })?;
    Ok(holds)
}

/// Builds the program and returns its path. The build for release links rocksdb of the other build:
/// that takes minutes, and is C++ alone.
fn program(profile: &str) -> Result<PathBuf, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c-libraries");
    let mut build = build::cargo();
    build.args(["build", "--profile", profile, "--manifest-path"]).arg(folder.join("Cargo.toml"));
    build.env("CARGO_TARGET_DIR", folder.join("target"));
    if profile == "release" {
        let outputs = fs::read_dir(folder.join("target/debug/build"))?.map_while(Result::ok);
        let outputs = outputs.map(|entry| entry.path().join("out"));
        let built = outputs.into_iter().find(|out| out.join("librocksdb.a").exists());
        build.env("ROCKSDB_STATIC", "1").env("ROCKSDB_LIB_DIR", built.ok_or("no librocksdb.a")?);
    }
    build::executable(&mut build, "c-libraries")
}

/// The accounts of a running program.
struct Seen {
    /// The tracker's bytes and blocks, and glibc's bytes in use.
    counted: [u64; 3],
    /// True if they were the same before and after the others were taken.
    is_still: bool,
    /// The sums of `inspect`, and its blocks: the usable size of each by its address.
    inspected: Value,
    blocks: BTreeMap<u64, u64>,
    /// The usable sizes of the dump's blocks by address: one each.
    dumped: BTreeMap<u64, Vec<u64>>,
    reports: Value,
    /// The bytes that are reported twice.
    twice: Value,
}

impl Seen {
    fn of(running: &mut Running, bench: &Bench) -> Result<Self, Failure> {
        let pid = running.pid.clone();
        let file = |name: &str| bench.file(name).display().to_string();
        let [report, dump, whole] = ["now.json", "now.dmd.json", "whole.json"].map(file);
        text(bench.about_memory().args(["snapshot", &pid, "--dump", "-o", &report]))?;
        thread::sleep(ANSWERED);
        let counted = running.counted("count")?;
        let inspected = json(bench.about_memory().args(["inspect", &pid, "--json"]))?;
        let blocks = blocks_of(&text(bench.about_memory().args(["inspect", &pid, "--blocks"]))?)?;
        let is_still = running.counted("count")? == counted;
        text(bench.about_memory().args(["symbolicate", &dump, "-o", &whole]))?;
        let coverage = json(bench.about_memory().args(["heap", "coverage", &dump, "--json"]))?;
        Ok(Seen {
            counted,
            is_still,
            inspected,
            blocks,
            dumped: dumped(&whole)?,
            reports: serde_json::from_slice(&fs::read(&report)?)?,
            twice: coverage["twice"]["bytes"].clone(),
        })
    }

    fn sum(&self, paths: &[&str]) -> u64 {
        let found = paths.iter().map(|path| self.inspected.pointer(path));
        found.filter_map(|found| found.and_then(Value::as_u64)).sum()
    }

    /// Writes the accounts, and what they must have in common. Returns whether all of it is so.
    fn write(&self, out: &mut dyn Write) -> Result<bool, Failure> {
        let Seen { counted: [bytes, count, in_use], blocks, dumped, reports, .. } = self;
        let [used, used_blocks] = ["/used/bytes", "/used/blocks"].map(|path| self.sum(&[path]));
        let all = self.sum(&["/used/bytes", "/headers", "/cached/bytes", "/bookkeeping"]);
        let lacking: Vec<u64> = blocks
            .iter()
            .filter(|(at, _)| !dumped.contains_key(at))
            .map(|(_, size)| *size)
            .collect();
        // The server frees what an answer took once it is sent.
        let gone = dumped.keys().filter(|at| !blocks.contains_key(at)).count();
        let is_same = |(at, found): (&u64, &Vec<u64>)| {
            found.len() == 1 && blocks.get(at).is_none_or(|size| *size == found[0])
        };
        let of_c = of_c(reports);
        let texts = amount(reports, |path| path == "explicit/texts");

        let mut row =
            |who: &str, bytes: u64, what: &str| writeln!(out, "  {who:15}{bytes:>12} {what}");
        row("counters", *bytes, &format!("bytes in {count} blocks"))?;
        row("inspect", used, &format!("bytes in {used_blocks} blocks"))?;
        row("mallinfo2", *in_use, "bytes in use")?;
        row("inspect", all, "bytes with headers, caches and glibc's structures")?;
        row("dump", dumped.values().flatten().sum(), &format!("bytes in {} blocks", dumped.len()))?;
        let what = format!("bytes in {} blocks of the tracker and its server", lacking.len());
        row("in no dump", lacking.iter().sum(), &what)?;
        for (library, bytes) in &of_c {
            row(library, *bytes, "bytes below explicit/c-heap")?;
        }
        row("texts of Rust", texts, "bytes by the program's reporter")?;

        let claims = [
            ("nothing changed meanwhile", self.is_still),
            ("counters and inspect are equal", [*bytes, *count] == [used, used_blocks]),
            ("inspect and mallinfo2 are equal", all == *in_use),
            ("each block of the dump is there once, with glibc's size", dumped.iter().all(is_same)),
            ("no other blocks", lacking.len() < OWN_BLOCKS && gone < OWN_BLOCKS),
            ("each library has its functions", of_c.values().all(|bytes| *bytes > 0)),
            ("the reporter has its texts", texts > 0),
            ("nothing is reported twice", self.twice == 0),
        ];
        for (what, is_so) in claims {
            writeln!(out, "  {what}: {}", yes(is_so))?;
        }
        Ok(claims.iter().all(|(_, is_so)| *is_so))
    }
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "NO" }
}

/// The program, which answers lines.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    pid: String,
}

impl Running {
    /// Starts the program and has it work. Its last argument is a new folder.
    fn start(command: &mut Command) -> Result<Self, Failure> {
        if let Some(folder) = command.get_args().last() {
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder)?;
        }
        command.env("GLIBC_TUNABLES", "glibc.malloc.arena_max=4");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut running = Running { child, lines, pid: String::new() };
        let line = running.line()?;
        running.pid = line.strip_prefix("ready ").ok_or("it was not ready")?.to_owned();
        for _ in 0..ROUNDS {
            running.counted("work")?;
        }
        Ok(running)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Sends a line. Returns the tracker's bytes and blocks, and the bytes of glibc.
    fn counted(&mut self, word: &str) -> Result<[u64; 3], Failure> {
        writeln!(self.child.stdin.as_mut().ok_or("no input")?, "{word}")?;
        let line = self.line()?;
        let numbers = line.split(' ').skip(1).map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        numbers.try_into().map_err(|_| format!("three numbers were expected: {line}").into())
    }

    /// Ends it, and returns its last line and its exit status.
    fn end(mut self) -> Result<String, Failure> {
        drop(self.child.stdin.take());
        let end = self.line()?;
        // The tracker's tree follows.
        std::io::copy(&mut self.lines, &mut std::io::sink())?;
        Ok(format!("{end}, {}", self.child.wait()?))
    }
}

/// Returns the usable sizes of the blocks of `inspect --blocks`, by address.
fn blocks_of(text: &str) -> Result<BTreeMap<u64, u64>, Failure> {
    let lines = text.lines().skip_while(|line| !line.contains("block at")).skip(1);
    let block = |line: &str| {
        let (address, bytes) = line.trim().split_once(' ').ok_or("two numbers were expected")?;
        Ok((u64::from_str_radix(address, 16)?, bytes.trim().parse()?))
    };
    lines.map(block).collect()
}

/// Returns the usable sizes of the blocks of a dump, by address: one each.
fn dumped(file: &str) -> Result<BTreeMap<u64, Vec<u64>>, Failure> {
    let dump: Value = serde_json::from_slice(&fs::read(file)?)?;
    let mut found = BTreeMap::<u64, Vec<u64>>::new();
    for block in dump["blockList"].as_array().ok_or("the dump has no blocks")? {
        let address = block["addr"].as_str().ok_or("a block has no address")?;
        let bytes = |name: &str| block[name].as_u64().unwrap_or(0);
        let address = u64::from_str_radix(address, 16)?;
        found.entry(address).or_default().push(bytes("req") + bytes("slop"));
    }
    Ok(found)
}

/// Returns the bytes below `explicit/c-heap` by library, and the rest.
fn of_c(reports: &Value) -> BTreeMap<&'static str, u64> {
    let all = amount(reports, |path| path.starts_with("explicit/c-heap/"));
    let of_library = |(library, beginnings): (&'static str, &[&str])| {
        let is_of = |part: &str| beginnings.iter().any(|beginning| part.starts_with(beginning));
        let bytes = amount(reports, |path| {
            path.strip_prefix("explicit/c-heap/").is_some_and(|rest| rest.split('/').any(is_of))
        });
        (library, bytes)
    };
    let mut found: BTreeMap<_, _> = LIBRARIES.into_iter().map(of_library).collect();
    found.insert("other C", all - found.values().sum::<u64>());
    found
}

/// Returns the sum of the reports whose paths are wanted.
fn amount(reports: &Value, is_wanted: impl Fn(&str) -> bool) -> u64 {
    let reports = reports["reports"].as_array().into_iter().flatten();
    let wanted = reports.filter(|report| report["path"].as_str().is_some_and(&is_wanted));
    wanted.filter_map(|report| report["amount"].as_u64()).sum()
}

fn json(command: &mut Command) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&text(command)?)?)
}

/// Runs a command and returns what it printed.
fn text(command: &mut Command) -> Result<String, Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
