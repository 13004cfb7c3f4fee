//! `cargo xtask clients fleet [NAME] [--python PROGRAM] [--seconds N]`: real engines answer every
//! question about a generated fleet, a real S3 store gets the files of an agent that is killed,
//! datasets in stores have the same answers, and the reference package of protocol buffers reads
//! our profiles.
//!
//! The engines are DuckDB, chDB (ClickHouse) and `PySpark`, modules of Python; the stores are
//! s3s-fs (`--s3s-fs`), moto and azurite (`--azurite`). Names are `crates`, `engines`, `otlp`,
//! `labels`, `clouds`, `symbols` and `store`.

mod clouds;
mod crates;
mod engines;
mod labels;
mod otlp;
mod server;
mod store;
mod symbols;
mod traced;
mod truth;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The state that all checks share.
struct Bench {
    about_memory: PathBuf,
    fleet: PathBuf,
    python: String,
    s3s: Option<PathBuf>,
    azurite: Option<PathBuf>,
    folder: PathBuf,
    /// The time during which the agent ships.
    shipping: Duration,
}

/// Returns whether every client that could run agrees with us.
///
/// # Errors
///
/// If a program of ours cannot be built or fails.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let value = |name: &str| {
        let at = args.iter().position(|word| *word == name)?;
        args.get(at + 1).copied()
    };
    let seconds = value("--seconds").map_or(Ok(40), str::parse)?;
    let scratch = Scratch::new()?;
    let bench = Bench {
        about_memory: build::debug("about-memory", "about-memory")?,
        fleet: build::debug("memreport-fleet", "memreport-fleet")?,
        python: value("--python").unwrap_or("python3").to_owned(),
        s3s: value("--s3s-fs").map(PathBuf::from),
        azurite: value("--azurite").map(PathBuf::from),
        folder: scratch.0.clone(),
        shipping: Duration::from_secs(seconds),
    };
    let only = args.first().filter(|word| !word.starts_with("--"));
    let mut holds = true;
    let checks: [(&str, Check); 7] = [
        ("crates", crates::run),
        ("engines", engines::run),
        ("otlp", otlp::run),
        ("labels", labels::run),
        ("clouds", clouds::run),
        ("symbols", symbols::run),
        ("store", store::run),
    ];
    for (name, check) in checks {
        if only.is_none_or(|only| *only == name) {
            holds &= check(&bench, out)?;
        }
    }
    Ok(holds)
}

type Check = fn(&Bench, &mut dyn Write) -> Result<bool, Failure>;

impl Bench {
    /// Returns whether Python has a module, or else prints that the client did not run, and how to
    /// install it.
    fn has_module(
        &self,
        client: &str,
        [module, package]: [&str; 2],
        out: &mut dyn Write,
    ) -> Result<bool, Failure> {
        let mut command = Command::new(&self.python);
        let check = format!("import {module}");
        let status =
            command.args(["-c", &check]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let is_there = status.is_ok_and(|status| status.success());
        if !is_there {
            writeln!(
                out,
                "clients fleet {client}: not run: {} has no module {module} (pip install {package}; \
                 --python names another Python)",
                self.python
            )?;
        }
        Ok(is_there)
    }

    /// Builds an example of the package, and returns its path.
    fn example(name: &str) -> Result<PathBuf, Failure> {
        let status = build::cargo()
            .args(["build", "--package", "memreport-fleet", "--example", name])
            .status()?;
        if !status.success() {
            return Err(format!("the example {name} could not be built").into());
        }
        Ok(build::target()?.join("debug/examples").join(name))
    }
}

/// Runs a command, and returns its standard output.
fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed: {}", text.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a command that prints JSON.
fn json(command: &mut Command) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&output(command)?)?)
}

/// Returns the files of a folder with this ending, sorted.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
