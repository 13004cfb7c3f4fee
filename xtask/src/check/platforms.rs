//! `cargo xtask platforms [NAME…]`: the libraries' tests built for other systems, and run here by
//! an emulator or as they are. Where there is a tracker, so are the checks of stacks and of books;
//! where there is the command line, its answers are compared with those of this system. For macOS
//! they are compiled and not run.
//!
//! A test that cannot pass there is listed in `platforms/known.txt` with the reason. Any other
//! failure is one of ours.

mod compiled;
mod programs;
mod shown;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use self::compiled::COMPILED;
use crate::build;
use crate::failure::Failure;
use crate::on_path;

/// A system, and how its programs are built and run here.
struct Platform {
    name: &'static str,
    target: &'static str,
    /// The packages with tests that can be built.
    packages: &'static [&'static str],
    has_tracker: bool,
    /// Programs that are needed, each with Debian's package.
    needs: &'static [(&'static str, &'static str)],
    linker: Option<&'static str>,
    runner: Option<&'static str>,
}

const PLATFORMS: [Platform; 3] = [
    Platform {
        name: "musl",
        target: "x86_64-unknown-linux-musl",
        packages: &["memreport", "memreport-dmd", "memreport-analysis"],
        has_tracker: true,
        needs: &[("musl-gcc", "musl-tools")],
        linker: None,
        runner: None,
    },
    Platform {
        name: "aarch64",
        target: "aarch64-unknown-linux-gnu",
        packages: &["memreport", "memreport-dmd", "memreport-analysis"],
        has_tracker: true,
        needs: &[("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")],
        linker: Some("aarch64-linux-gnu-gcc"),
        runner: Some("qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu"),
    },
    Platform {
        name: "windows",
        target: "x86_64-pc-windows-gnu",
        packages: &["memreport", "memreport-analysis", "about-memory"],
        has_tracker: false,
        needs: &[("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"), ("wine", "wine64")],
        linker: Some("x86_64-w64-mingw32-gcc"),
        runner: Some(WINE),
    },
];

const WINE: &str = "wine";

/// Failures that say nothing about our code: `PLATFORM TEST — REASON`, a line each.
const KNOWN: &str = include_str!("platforms/known.txt");

/// Runs the tests of all platforms, or of those that are named. Returns `false` if a test fails
/// that should pass.
pub(crate) fn run(names: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let run_here = PLATFORMS.iter().map(|platform| platform.name);
    let all: Vec<_> = run_here.chain(COMPILED.iter().map(|system| system.name)).collect();
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        return Err(format!("no platform {unknown}; there are {}", all.join(", ")).into());
    }
    let mut holds = true;
    let is_wanted = |name: &str| names.is_empty() || names.contains(&name);
    for platform in PLATFORMS.iter().filter(|platform| is_wanted(platform.name)) {
        if let Some(missing) = missing(platform)? {
            writeln!(out, "{}: not run: {missing}", platform.name)?;
            continue;
        }
        let ran = tests(platform)?;
        holds &= ran.write(platform, out)?;
        if platform.has_tracker {
            holds &= programs::run(platform, out)?;
        }
        if platform.packages.contains(&"about-memory") {
            holds &= shown::run(platform, out)?;
        }
    }
    for system in COMPILED.iter().filter(|system| is_wanted(system.name)) {
        holds &= compiled::run(system, out)?;
    }
    Ok(holds)
}

/// Returns what is missing for a platform, with the remedy.
fn missing(platform: &Platform) -> Result<Option<String>, Failure> {
    for (program, package) in platform.needs {
        if let Err(missing) = on_path::find(&[program], package) {
            return Ok(Some(missing));
        }
    }
    Ok(lacks_target(platform.target))
}

/// Returns the remedy, if the standard library of a target is missing.
pub(super) fn lacks_target(target: &str) -> Option<String> {
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let has = installed.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains(target));
    (!has).then(|| format!("the target is missing: rustup target add {target}"))
}

/// The outcomes of a platform's tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ran {
    passed: usize,
    ignored: usize,
    failed: BTreeSet<String>,
    /// Programs that ended in the midst of their tests.
    cut: usize,
    is_built: bool,
}

fn tests(platform: &Platform) -> Result<Ran, Failure> {
    if platform.runner == Some(WINE) {
        build_stand_in()?;
    }
    // Some tests run the examples, which `cargo test --tests` does not build.
    let examples = cargo(platform, &["build", "--examples"]).status()?;
    if !examples.success() {
        return Ok(Ran::default());
    }
    let mut tests = cargo(platform, &["test", "--no-fail-fast", "--lib", "--tests"]);
    let output = tests.stderr(Stdio::inherit()).output()?;
    Ok(Ran::parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns a command of cargo for the packages of a platform.
fn cargo(platform: &Platform, words: &[&str]) -> Command {
    let mut cargo = cargo_for(platform, words);
    for package in platform.packages {
        cargo.args(["--package", package]);
    }
    cargo
}

/// Returns a command of cargo that builds and runs for a platform.
fn cargo_for(platform: &Platform, words: &[&str]) -> Command {
    let mut cargo = cargo_to(platform.target, words);
    let variable = platform.target.to_uppercase().replace('-', "_");
    for (end, value) in [("LINKER", platform.linker), ("RUNNER", platform.runner)] {
        if let Some(value) = value {
            cargo.env(format!("CARGO_TARGET_{variable}_{end}"), value);
        }
    }
    if let Some(linker) = platform.linker {
        cargo.env(format!("CC_{}", platform.target.replace('-', "_")), linker);
    }
    for_wine(&mut cargo);
    cargo
}

/// Returns a command of cargo for a target.
fn cargo_to(target: &str, words: &[&str]) -> Command {
    let mut cargo = build::cargo();
    cargo.args(words).args(["--target", target]);
    // A folder of its own: flags are other ones there, and so are the builds of build scripts.
    cargo.env("CARGO_TARGET_DIR", folder()).env("CARGO_INCREMENTAL", "0");
    cargo
}

/// Sets the variables of Wine: it tells of each thing that it lacks, and finds a library there.
fn for_wine(command: &mut Command) {
    command.env("WINEDEBUG", "-all").env("WINEPATH", folder().join(STAND_IN));
}

/// Returns a command that runs a program for the platform.
fn runner(platform: &Platform, program: &Path) -> Command {
    let mut words = platform.runner.into_iter().flat_map(|runner| runner.split(' '));
    match words.next() {
        None => Command::new(program),
        Some(first) => {
            let mut command = Command::new(first);
            command.args(words).arg(program);
            command
        }
    }
}

/// The folder of a library that Wine lacks, below the builds.
const STAND_IN: &str = "wine";

/// Builds that library.
fn build_stand_in() -> Result<(), Failure> {
    let folder = folder().join(STAND_IN);
    fs::create_dir_all(&folder)?;
    let source = build::root().join("xtask/src/check/platforms/bcryptprimitives.c");
    let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
    compiler.arg("-shared").arg(source).arg("-o").arg(folder.join("bcryptprimitives.dll"));
    match compiler.arg("-ladvapi32").status()?.success() {
        true => Ok(()),
        false => Err("bcryptprimitives.dll does not compile".into()),
    }
}

fn folder() -> PathBuf {
    build::root().join("target/platforms")
}

impl Ran {
    /// Reads what `cargo test` prints.
    fn parse(text: &str) -> Self {
        let mut ran = Ran::default();
        let (mut begun, mut ended) = (0_usize, 0_usize);
        for line in text.lines().map(str::trim) {
            if line.starts_with("running ") && line.ends_with(['s', 't']) {
                ran.is_built = true;
                begun += 1;
            } else if let Some(test) = line.strip_prefix("test ")
                && let Some((name, outcome)) = test.rsplit_once(" ... ")
            {
                match outcome.split(',').next() {
                    Some("ok") => ran.passed += 1,
                    Some("FAILED") => drop(ran.failed.insert(name.to_owned())),
                    Some("ignored") => ran.ignored += 1,
                    _ => {}
                }
            } else if line.starts_with("test result: ") {
                ended += 1;
            }
        }
        // A test that fails shows what the programs that it ran have printed: whole runs, too.
        ran.cut = begun.saturating_sub(ended);
        ran
    }

    /// Writes the sums, and each failure with its reason. Returns whether all have one.
    fn write(&self, platform: &Platform, out: &mut dyn Write) -> Result<bool, Failure> {
        let known = known(platform.name);
        let reason = |test: &str| known.iter().find(|(name, _)| *name == test).map(|(_, why)| *why);
        let name = platform.name;
        writeln!(
            out,
            "{name}: {} passed, {} failed, {} left out by themselves ({})",
            self.passed,
            self.failed.len(),
            self.ignored,
            platform.packages.join(", ")
        )?;
        let mut holds = self.is_built && self.cut == 0;
        if !self.is_built {
            writeln!(out, "{name}: FAILED: nothing was run")?;
        }
        if self.cut > 0 {
            writeln!(out, "{name}: FAILED: {} programs ended in the midst", self.cut)?;
        }
        for test in &self.failed {
            match reason(test) {
                Some(why) => writeln!(out, "  {test}: cannot pass here: {why}")?,
                None => {
                    writeln!(out, "  {test}: FAILED")?;
                    holds = false;
                }
            }
        }
        for (test, _) in known.iter().filter(|(test, _)| !self.failed.contains(*test)) {
            writeln!(out, "  {test}: did not fail, although it is listed")?;
        }
        Ok(holds)
    }
}

/// Returns the tests of a platform that cannot pass, with the reasons.
fn known(platform: &str) -> Vec<(&'static str, &'static str)> {
    let of = |line: &'static str| {
        let (test, why) = line.strip_prefix(platform)?.strip_prefix(' ')?.split_once(" — ")?;
        Some((test, why))
    };
    KNOWN.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_and_a_program_that_ends_is_seen() {
        let text = "\nrunning 4 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, slow\n\
                    test e - should panic ... ok\n\ntest result: FAILED. 2 passed; 1 failed\n\
                    running 1 test\ntest f ... ok\n";
        let ran = Ran::parse(text);
        assert_eq!((ran.passed, ran.ignored, ran.cut, ran.is_built), (3, 1, 1, true));
        assert_eq!(ran.failed.iter().collect::<Vec<_>>(), ["c"]);
        assert!(!Ran::parse("error: could not compile").is_built);
    }

    #[test]
    fn each_known_failure_has_a_platform_and_a_reason() {
        let listed: usize = PLATFORMS.iter().map(|platform| known(platform.name).len()).sum();
        assert_eq!(listed, KNOWN.lines().count());
    }

    #[test]
    fn a_failure_without_a_reason_fails() {
        let platform = &PLATFORMS[1];
        let of = |failed: &[&str]| {
            let failed = failed.iter().map(|&name| name.to_owned()).collect();
            let ran = Ran { passed: 1, is_built: true, failed, ..Ran::default() };
            ran.write(platform, &mut Vec::new()).expect("a vector takes all")
        };
        let (test, _) = known(platform.name)[0];
        assert!(of(&[]) && of(&[test]));
        assert!(!of(&[test, "ours"]));
        assert!(!Ran::default().write(platform, &mut Vec::new()).expect("a vector takes all"));
    }
}
