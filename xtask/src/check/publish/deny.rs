//! `cargo xtask deny`: the licences, sources and versions of all dependencies, as `deny.toml`
//! allows them, by cargo-deny without a network.
//!
//! A list that allows no licence must be refused first. Advisories are compared where cargo-deny
//! has fetched their database before.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

const INSTALL: &str = "not run: cargo-deny is missing: cargo install cargo-deny --locked";

/// The checks that need no network, once cargo has fetched the packages.
const OFFLINE: [&str; 3] = ["bans", "licenses", "sources"];

/// Checks the dependencies. Returns `false` if one is not allowed.
pub(crate) fn run(out: &mut dyn Write) -> Result<bool, Failure> {
    let mut version = build::cargo();
    version.args(["deny", "--version"]).stderr(Stdio::null());
    if !version.output().is_ok_and(|output| output.status.success()) {
        writeln!(out, "{INSTALL}")?;
        return Ok(true);
    }
    let scratch = Scratch::new()?;
    let planted = scratch.0.join("deny.toml");
    fs::write(&planted, "[licenses]\nallow = []\n")?;
    let mut refused = deny();
    refused.arg("check").arg("--config").arg(&planted).arg("licenses");
    if refused.stderr(Stdio::null()).status()?.success() {
        writeln!(out, "FAILED: cargo-deny accepts all licences where none is allowed")?;
        return Ok(false);
    }
    let mut holds = deny().arg("check").args(OFFLINE).status()?.success();
    if build::cargo_home()?.join("advisory-dbs").is_dir() {
        holds &= deny().args(["check", "advisories"]).status()?.success();
    } else {
        writeln!(out, "advisories: not run: their database is missing: cargo deny fetch db")?;
    }
    writeln!(out, "{}: {}", OFFLINE.join(", "), if holds { "all allowed" } else { "FAILED" })?;
    Ok(holds)
}

/// Returns cargo-deny for all dependencies of the workspace, without a network.
fn deny() -> Command {
    let mut deny = build::cargo();
    deny.args(["deny", "--offline", "--all-features"]).current_dir(build::root());
    deny
}
