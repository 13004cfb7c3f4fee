//! `cargo xtask foreign stories [NAME]`: the figures of `docs/case-studies`, from published crates.
//!
//! Each program is built twice, with line tables and with full debug information, and shown by
//! `about-memory tree`: the dump that it saves, and the running program. Then the change of the
//! story is applied to a copy of the library, and a counting allocator compares the heaps. A missed
//! target fails.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Bench, folder};
use crate::build::{self, sources};
use crate::failure::Failure;

/// A story, which has the name of its patch.
struct Story {
    name: &'static str,
    /// A program of `xtask/foreign`.
    program: &'static str,
    /// The feature of the program's library.
    feature: &'static str,
    /// The package that the patch changes.
    changed: &'static str,
    /// The share of the live heap in percent that the change must save.
    saved: f64,
}

const STORIES: [Story; 3] = [
    Story {
        name: "runtime",
        program: "script-objects",
        feature: "boa_engine",
        changed: "boa_engine",
        saved: 0.0,
    },
    Story {
        name: "search",
        program: "document-index",
        feature: "tantivy",
        changed: "tantivy",
        saved: 0.0,
    },
    Story {
        name: "sql",
        program: "sql-cache",
        feature: "sqlparser",
        changed: "sqlparser",
        saved: 10.0,
    },
];

/// The shares in percent that a tree must have: below a named root, with a type, and at most below
/// several roots.
const NAMED: f64 = 95.0;
const TYPED: f64 = 95.0;
const SEVERAL: f64 = 3.0;

/// The number of rows of the table of spare room.
const ROWS: usize = 8;

/// Runs one story or all. Returns `false` if a target is missed.
pub(super) fn run(wanted: &[&str], bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let names: Vec<&str> = STORIES.iter().map(|story| story.name).collect();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        return Err(format!("no story `{unknown}`; there are {}", names.join(", ")).into());
    }
    let mut holds = true;
    for story in STORIES.iter().filter(|story| wanted.is_empty() || wanted.contains(&story.name)) {
        holds &= story.tell(bench, out)?;
    }
    writeln!(out, "{}", if holds { "all of it holds" } else { "FAILED" })?;
    Ok(holds)
}

impl Story {
    fn tell(&self, bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
        let manifest = folder().join("Cargo.toml");
        writeln!(out, "{}: {} of crates.io", self.name, self.changed)?;
        let mut holds = true;
        let mut plain = None;
        for (profile, title) in [("release", "line tables"), ("full", "full debug information")] {
            let program = self.build(&manifest, profile, &[])?;
            let trees = Trees::of(&program, bench)?;
            holds &= write_shares(&trees.dump, &format!("{title}, dump"), out)?;
            holds &= write_shares(&trees.running, &format!("{title}, running"), out)?;
            if profile == "full" {
                write_spare(&trees.running, out)?;
            }
            plain.get_or_insert(program);
        }
        let before = Heap::of(&plain.ok_or("no program was built")?)?;
        let after = Heap::of(&self.changed(bench)?)?;
        if before.result != after.result {
            return Err("the changed program has another result".into());
        }
        let saved = percent(before.bytes.saturating_sub(after.bytes), before.bytes);
        writeln!(
            out,
            "  docs/case-studies/{}.patch: {} bytes in {} blocks before, {} in {} after: {saved:.1} % saved",
            self.name, before.bytes, before.blocks, after.bytes, after.blocks
        )?;
        Ok(holds && saved >= self.saved)
    }

    /// Builds the program and returns its path.
    fn build(&self, manifest: &Path, profile: &str, more: &[&str]) -> Result<PathBuf, Failure> {
        let mut build = build::cargo();
        build.args(["build", "--profile", profile, "--features", self.feature, "--manifest-path"]);
        build.arg(manifest).args(more).env("CARGO_TARGET_DIR", folder().join("target"));
        build::executable(&mut build, self.program)
    }

    /// Builds the program with the changed library. Both are copies: the lock file of the original
    /// stays as it is.
    fn changed(&self, bench: &Bench) -> Result<PathBuf, Failure> {
        let library = bench.file(self.changed);
        let manifest = folder().join("Cargo.toml");
        let source = sources::of_package(&manifest, self.changed, &["--features", self.feature])?;
        sources::copy(&source, &library)?;
        let patch = build::root().join(format!("docs/case-studies/{}.patch", self.name));
        let mut apply = Command::new("git");
        apply.arg("apply").arg(&patch).current_dir(&library);
        // Otherwise a repository around the folder takes the paths of the patch as its own.
        apply.env("GIT_CEILING_DIRECTORIES", &bench.scratch.0);
        if !apply.status()?.success() {
            return Err(format!("{} does not apply", patch.display()).into());
        }
        let program = bench.file("program");
        sources::copy(&folder().join("src"), &program.join("src"))?;
        fs::copy(folder().join("Cargo.lock"), program.join("Cargo.lock"))?;
        let manifest = fs::read_to_string(folder().join("Cargo.toml"))?;
        let root = format!("path = \"{}/", build::root().display());
        let manifest = manifest.replace("path = \"../../", &root);
        fs::write(program.join("Cargo.toml"), manifest)?;
        let replace = format!("patch.crates-io.{}.path=\"{}\"", self.changed, library.display());
        self.build(&program.join("Cargo.toml"), "release", &["--config", &replace])
    }
}

/// The live heap of a program by its counting allocator, and the result of its work.
struct Heap {
    bytes: u64,
    blocks: u64,
    result: String,
}

impl Heap {
    /// Runs the program without DMD.
    fn of(program: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.env_remove("DMD").stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output()?;
        let text = String::from_utf8(output.stdout)?;
        let words = |beginning: &str| text.lines().find_map(|line| line.strip_prefix(beginning));
        let (bytes, blocks) =
            words("live ").and_then(|live| live.split_once(' ')).ok_or("no sums")?;
        let result = words("result ").ok_or("no result")?.to_owned();
        Ok(Heap { bytes: bytes.parse()?, blocks: blocks.parse()?, result })
    }
}

/// The JSON of `about-memory tree` of a program.
struct Trees {
    /// Of its dump.
    dump: Value,
    /// Of the running program.
    running: Value,
}

impl Trees {
    /// Runs the program in mode `scan` until it has done its work, and asks.
    fn of(program: &Path, bench: &Bench) -> Result<Self, Failure> {
        let (report, dump) = (bench.file("story.json.gz"), bench.file("story.dmd.json.gz"));
        let mut command = Command::new(program);
        command.arg(&report).env("DMD", "--mode=scan").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = command.spawn()?;
        let output = running.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines();
        let is_done = lines.any(|line| line.is_ok_and(|line| line.starts_with("result ")));
        let trees = if is_done {
            let process = running.id().to_string();
            tree(bench, &dump).and_then(|dump| {
                let running = tree(bench, process.as_ref())?;
                Ok(Trees { dump, running })
            })
        } else {
            Err(format!("{} has no result", program.display()).into())
        };
        // The end of its input ends it.
        drop(running.stdin.take());
        let status = running.wait()?;
        if status.success() {
            trees
        } else {
            Err(format!("{}: {status}", program.display()).into())
        }
    }
}

fn tree(bench: &Bench, of: &Path) -> Result<Value, Failure> {
    let mut tree = bench.about_memory();
    let tree = tree.args(["tree", "--json", "--min", "0"]).arg(of).output()?;
    if !tree.status.success() {
        return Err(format!("tree: {}", String::from_utf8_lossy(&tree.stderr)).into());
    }
    Ok(serde_json::from_slice(&tree.stdout)?)
}

/// Writes the shares of a tree. Returns `false` if a target is missed.
fn write_shares(tree: &Value, title: &str, out: &mut dyn Write) -> Result<bool, Failure> {
    let bytes = |key: &str| tree[key].as_u64().unwrap_or(0);
    let share = |key: &str| percent(bytes(key), bytes("bytes"));
    let (named, typed, several) = (share("named"), share("typed"), share("several"));
    writeln!(
        out,
        "  {title}: {} bytes in {} blocks; {named:.1} % below a named root, {typed:.1} % have a type, \
         {:.1} % through typed fields all the way, several roots hold {several:.1} %",
        bytes("bytes"),
        bytes("blocks"),
        share("certain"),
    )?;
    Ok(named >= NAMED && typed >= TYPED && several <= SEVERAL)
}

/// The collections of one element type.
#[derive(Default)]
struct Spare {
    blocks: u64,
    places: u64,
    used: u64,
    bytes: u64,
}

/// Writes the collections with the most spare bytes.
fn write_spare(tree: &Value, out: &mut dyn Write) -> Result<(), Failure> {
    let mut by_name = BTreeMap::new();
    rows(&tree["rows"]).for_each(|row| add_spare(row, &mut by_name));
    let mut by_bytes: Vec<(&str, Spare)> = by_name.into_iter().collect();
    by_bytes.sort_by_key(|(_, spare)| std::cmp::Reverse(spare.bytes));
    let sum: u64 = by_bytes.iter().map(|(_, spare)| spare.bytes).sum();
    let whole = tree["bytes"].as_u64().unwrap_or(0);
    writeln!(out, "  spare room: {sum} bytes, {:.1} % of the heap", percent(sum, whole))?;
    for (name, spare) in by_bytes.iter().filter(|(_, spare)| spare.bytes > 0).take(ROWS) {
        let full = percent(spare.used, spare.places);
        let Spare { blocks, bytes, .. } = spare;
        writeln!(out, "  {bytes:>12} spare, {blocks:>7} blocks, {full:>5.1} % full  {name}")?;
    }
    Ok(())
}

/// Returns the rows of a list.
fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn add_spare<'t>(node: &'t Value, by_name: &mut BTreeMap<&'t str, Spare>) {
    let number = |key: &str| node[key].as_u64().unwrap_or(0);
    if number("places") > 0 {
        let name = node["name"].as_str().unwrap_or_default();
        // The type behind a field's name.
        let name = name.split_once(": ").map_or(name, |(_, name)| name);
        let sum = by_name.entry(name).or_default();
        sum.blocks += number("blocks");
        sum.places += number("places");
        sum.used += number("used");
        sum.bytes += number("spare");
    }
    rows(&node["children"]).for_each(|row| add_spare(row, by_name));
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
