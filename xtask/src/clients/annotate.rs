//! `annotate --apply` on whole programs: the classified share before, predicted, and after.
//!
//! The full-text index of the tests is copied without its derives and reporters; mini-redis, a
//! server of crates.io, gets memreport by `cargo memreport init`. Each is built with debug
//! information, scanned, annotated, built again and scanned again. Its own tests must pass.

mod fulltext;
mod mini_redis;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::build;
use crate::failure::Failure;

/// A program whose source is annotated.
pub(super) trait Program {
    /// Returns its name.
    fn name(&self) -> &'static str;
    /// Writes its package into an empty folder.
    fn prepare(&self, bench: &Bench) -> Result<(), Failure>;
    /// Returns the features with which it is built.
    fn features(&self) -> &'static [&'static str];
    /// Returns the arguments of its tests.
    fn test_arguments(&self) -> &'static [&'static str] {
        &[]
    }
    /// Runs it until its heap is full, and takes a scan of it at this place.
    fn scan(&self, program: &Path, report: &Path, bench: &Bench) -> Result<(), Failure>;
}

/// The tools, and the folders of one program.
pub(super) struct Bench {
    pub(super) about_memory: PathBuf,
    pub(super) cargo_memreport: PathBuf,
    pub(super) package: PathBuf,
    target: PathBuf,
}

/// The largest difference between the predicted and the measured share, in percentage points.
/// Threads share their work differently in each run.
const TOLERANCE: f64 = 1.0;

/// Runs the check of the named program, or of all. Returns `false` if one fails.
pub(super) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let programs: [&dyn Program; 2] = [&fulltext::Fulltext, &mini_redis::MiniRedis];
    let is_wanted = |of: &&&dyn Program| args.first().is_none_or(|name| *name == of.name());
    let mut all_hold = true;
    for program in programs.iter().filter(is_wanted) {
        all_hold &= check(*program, out)?;
    }
    Ok(all_hold)
}

fn check(program: &dyn Program, out: &mut dyn Write) -> Result<bool, Failure> {
    let name = program.name();
    let folder = build::target()?.join("annotate").join(name);
    let bench = Bench {
        about_memory: build::debug("about-memory", "about-memory")?,
        cargo_memreport: build::debug("about-memory", "cargo-memreport")?,
        package: folder.join("package"),
        target: folder.join("target"),
    };
    let _ = fs::remove_dir_all(&bench.package);
    fs::create_dir_all(&bench.package)?;
    if let Err(error) = program.prepare(&bench) {
        writeln!(out, "annotate {name}: not run: {error}")?;
        return Ok(true);
    }
    let before = bench.scan(program, "before")?;
    let mut annotate = Command::new(&bench.about_memory);
    annotate.arg("annotate").arg(&before).args(["--apply", "--json"]);
    let patch = bench.answer(annotate.current_dir(&bench.package))?;
    let patch: Value = serde_json::from_slice(&patch.stdout)?;
    let mut test = bench.cargo("test");
    test.args(program.features()).arg("--").args(program.test_arguments());
    bench.answer(&mut test)?;
    let after = bench.scan(program, "after")?;
    let share = |of: &str| {
        let number = |name: &str| patch[name].as_i64().unwrap_or(0) as f64;
        100.0 * number(of) / number("heap").max(1.0)
    };
    let mut coverage = Command::new(&bench.about_memory);
    let coverage = bench.answer(coverage.args(["heap", "coverage", "--json"]).arg(&after))?;
    let coverage: Value = serde_json::from_slice(&coverage.stdout)?;
    let measured = coverage["score"].as_f64().ok_or("coverage has no score")?;
    let predicted = share("predicted");
    let changes = patch["changes"].as_array().map_or(0, Vec::len);
    writeln!(
        out,
        "annotate {name}: {:.2} % of {} bytes classified before, {predicted:.2} % predicted, {measured:.2} % after; {changes} \
         changes; it compiles, and its own tests pass",
        share("classified"),
        patch["heap"]
    )?;
    for left in patch["left"].as_array().into_iter().flatten().take(5) {
        writeln!(out, "  left: {} bytes, {}: {}", left["bytes"], left["what"], left["why"])?;
    }
    let holds = (predicted - measured).abs() <= TOLERANCE && predicted > share("classified");
    if !holds {
        writeln!(
            out,
            "annotate {name}: FAILED: the prediction is off by more than {TOLERANCE} points"
        )?;
    }
    Ok(holds)
}

impl Bench {
    fn cargo(&self, word: &str) -> Command {
        let mut cargo = build::cargo();
        cargo.args([word, "--quiet"]).current_dir(&self.package);
        // Types need debug information, also in a release.
        cargo.env("CARGO_TARGET_DIR", &self.target).env("CARGO_PROFILE_RELEASE_DEBUG", "2");
        cargo
    }

    /// Builds the program and takes a scan. Returns the scan's file.
    fn scan(&self, program: &dyn Program, name: &str) -> Result<PathBuf, Failure> {
        self.answer(self.cargo("build").arg("--release").args(program.features()))?;
        let report = self.target.join(format!("{name}.json"));
        program.scan(&self.target.join("release").join(program.name()), &report, self)?;
        Ok(self.target.join(format!("{name}.dmd.json")))
    }

    /// Runs a command that must succeed.
    pub(super) fn answer(&self, command: &mut Command) -> Result<Output, Failure> {
        let output = command.env("CARGO_TARGET_DIR", &self.target).output()?;
        if output.status.success() {
            return Ok(output);
        }
        let (said, printed) =
            (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        Err(format!("{command:?} failed: {said}{printed}").into())
    }
}
