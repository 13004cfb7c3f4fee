//! The crates of columns and stores are compiled for `memreport-fleet` alone.

use std::collections::BTreeSet;
use std::io::Write;

use super::{Bench, output};
use crate::build;
use crate::failure::Failure;

/// The packages that people depend on or install.
const OTHERS: [&str; 6] = [
    "memreport",
    "memreport-derive",
    "memreport-dmd",
    "memreport-analysis",
    "dmd-preload",
    "about-memory",
];

/// The crates that bring nearly all others.
const OF_FLEET: [&str; 5] =
    ["arrow-array", "memreport-fleet", "object_store", "opentelemetry-proto", "parquet"];

/// Returns whether no other package compiles a crate of the fleet.
pub(super) fn run(_: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let fleet = crates("memreport-fleet")?;
    // The check can fail: these are names of crates.
    let mut holds = OF_FLEET.iter().all(|name| has(&fleet, name));
    let mut counts = Vec::new();
    for package in OTHERS {
        let crates = crates(package)?;
        let wrong: Vec<_> = OF_FLEET.iter().filter(|name| has(&crates, name)).collect();
        if !wrong.is_empty() {
            writeln!(out, "  {package} compiles {wrong:?}")?;
            holds = false;
        }
        counts.push(format!("{package} {}", crates.len()));
    }
    writeln!(
        out,
        "clients fleet crates: {}: memreport-fleet compiles {} crates; {} without those of columns \
         and stores",
        if holds { "passed" } else { "FAILED" },
        fleet.len(),
        counts.join(", "),
    )?;
    Ok(holds)
}

/// Returns the crates that cargo compiles for a package, such as `bytes v1.11.0`.
fn crates(package: &str) -> Result<BTreeSet<String>, Failure> {
    let mut tree = build::cargo();
    tree.args(["tree", "--package", package, "--edges", "normal,build", "--prefix", "none"]);
    let text = output(tree.args(["--format", "{p}", "--no-dedupe"]))?;
    let name_and_version = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    Ok(text.lines().filter_map(name_and_version).collect())
}

fn has(crates: &BTreeSet<String>, name: &str) -> bool {
    crates.iter().any(|one| one.split(' ').next() == Some(name))
}
