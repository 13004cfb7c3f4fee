//! `cargo xtask semver [REVISION]`: whether the version of each library allows the changes of its
//! public items since a revision, by default since the last tag.
//!
//! cargo-semver-checks compares them, from what rustdoc writes of both.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::build;
use crate::failure::Failure;

/// The libraries that other programs use. Macros of derives have no items to compare.
const LIBRARIES: [&str; 3] = ["memreport", "memreport-dmd", "memreport-analysis"];

const INSTALL: &str =
    "not run: cargo-semver-checks is missing: cargo install cargo-semver-checks --locked";

/// Compares the libraries. Returns `false` if a version does not allow its changes.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let mut version = build::cargo();
    version.args(["semver-checks", "--version"]).stderr(Stdio::null());
    if !version.output().is_ok_and(|output| output.status.success()) {
        writeln!(out, "{INSTALL}")?;
        return Ok(true);
    }
    let revision = match args {
        [] => last_tag()?,
        [revision] => Some((*revision).to_owned()),
        _ => return Err("usage: cargo xtask semver [REVISION]".into()),
    };
    let Some(revision) = revision else {
        writeln!(out, "not run: there is no tag yet: cargo xtask semver REVISION")?;
        return Ok(true);
    };
    let mut holds = true;
    for library in LIBRARIES {
        writeln!(out, "{library}, since {revision}:")?;
        out.flush()?;
        let mut check = build::cargo();
        check.args(["semver-checks", "--all-features", "--package", library]);
        holds &= check.args(["--baseline-rev", &revision]).status()?.success();
    }
    Ok(holds)
}

/// Returns the last tag before this commit.
fn last_tag() -> Result<Option<String>, Failure> {
    let mut git = Command::new("git");
    git.args(["describe", "--tags", "--abbrev=0"]).current_dir(build::root());
    let output = git.stderr(Stdio::null()).output()?;
    let tag = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok((!tag.is_empty()).then_some(tag))
}
