//! Features alone and in pairs, and the oldest Rust that the dependencies allow.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::process::Command;

use serde_json::Value;

use super::platforms::lacks_target;
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// Features of `memreport` that affect each other. They are also checked in pairs; all others only
/// alone.
const RELATED: &str = "std,derive,bytes,http,dashmap,hashbrown-0_14,indexmap,lock_api,ordermap,parking_lot,serde_json";

/// Features that ci builds: all crates together, and allocators, which are compiled from C
/// or C++.
const OTHERWISE: &str = "all-crates,jemalloc,mimalloc,snmalloc";

/// The calls of cargo-hack.
const CHECKS: [(&str, &[&str]); 3] = [
    (
        "each feature of memreport alone",
        &[
            "--package",
            "memreport",
            "--each-feature",
            "--optional-deps",
            "--exclude-all-features",
            "--exclude-features",
            OTHERWISE,
        ],
    ),
    (
        "pairs of related features",
        &[
            "--package",
            "memreport",
            "--feature-powerset",
            "--depth",
            "2",
            "--include-features",
            RELATED,
        ],
    ),
    (
        "the features of dmd",
        &[
            "--package",
            "memreport-dmd",
            "--feature-powerset",
            "--exclude-features",
            "jemalloc,mimalloc,snmalloc",
        ],
    ),
];

/// Checks the features one by one and in pairs. Takes minutes.
pub(crate) fn run(out: &mut dyn Write) -> Result<bool, Failure> {
    if !build::cargo().args(["hack", "--version"]).output()?.status.success() {
        writeln!(
            out,
            "not run: features alone and in pairs: cargo-hack is missing (cargo install cargo-hack)"
        )?;
        return Ok(true);
    }
    for (what, arguments) in CHECKS {
        writeln!(out, "\n# {what}: cargo hack check {}", arguments.join(" "))?;
        let mut cargo = build::cargo();
        cargo.args(["hack", "check", "--quiet"]).args(arguments);
        let output = cargo.output()?;
        let message = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || message.contains("\nwarning: ") {
            writeln!(out, "{message}\nFAILED: {what}")?;
            return Ok(false);
        }
    }
    writeln!(
        out,
        "\nnot run: dmd over jemalloc, mimalloc and snmalloc, which ci builds and tests"
    )?;
    Ok(true)
}

/// Builds and runs a program without std. It would not link if anything used std.
pub(crate) fn without_std(out: &mut dyn Write) -> Result<bool, Failure> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        writeln!(out, "\nnot run: a program without std, which is made for Linux with glibc")?;
        return Ok(true);
    }
    writeln!(out, "\n# a program without std measures its values: xtask/no-std")?;
    let folder = build::root().join("xtask/no-std");
    let mut cargo = build::cargo();
    cargo.current_dir(folder).args(["run", "--release", "--quiet", "--target-dir"]);
    let holds = cargo.arg(build::target()?.join("no-std")).status()?.success();
    if !holds {
        writeln!(out, "\nFAILED: a program without std measures its values")?;
    }
    Ok(holds)
}

/// Checks `memreport` for a processor whose addresses have 32 bits, where that target is installed.
pub(crate) fn narrow_addresses(out: &mut dyn Write) -> Result<bool, Failure> {
    const TARGET: &str = "i686-unknown-linux-gnu";
    const FEATURES: [&[&str]; 3] =
        [&["--no-default-features"], &["--no-default-features", "--features=bytes"], &[]];

    writeln!(out, "\n# memreport where addresses have 32 bits: {TARGET}")?;
    if let Some(missing) = lacks_target(TARGET) {
        writeln!(out, "not run: {missing}")?;
        return Ok(true);
    }
    for features in FEATURES {
        let mut cargo = build::cargo();
        cargo.args(["check", "--quiet", "--package", "memreport", "--target", TARGET]);
        cargo.arg("--target-dir").arg(build::target()?.join("narrow"));
        let output = cargo.args(features).output()?;
        if !output.status.success() || !output.stderr.is_empty() {
            let message = String::from_utf8_lossy(&output.stderr);
            writeln!(out, "{message}\nFAILED: memreport {features:?} for {TARGET}")?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// The packages that promise a Rust version, with their folders.
const PROMISING: [(&str, &str); 5] = [
    ("memreport", "memreport"),
    ("memreport-derive", "memreport-derive"),
    ("memreport-dmd", "dmd"),
    ("memreport-analysis", "dmd-analysis"),
    ("about-memory", "about-memory"),
];

/// Checks that the promised Rust version of each package is no older than its dependencies require,
/// and builds the packages with it where it is installed.
pub(crate) fn rust_version(out: &mut dyn Write) -> Result<bool, Failure> {
    let mut holds = true;
    for (package, folder) in PROMISING {
        let (ours, (theirs, by)) = versions(package)?;
        writeln!(
            out,
            "\n# {package} is for Rust 1.{ours}; its dependencies are for 1.{theirs} at least ({by})"
        )?;
        if ours < theirs {
            writeln!(out, "\nFAILED: {by} needs a newer Rust than {package} promises")?;
            holds = false;
        }
        let toolchain = format!("1.{ours}");
        let mut rustup = Command::new("rustup");
        rustup.args(["run", &toolchain, "cargo", "--version"]);
        if !rustup.output().is_ok_and(|output| output.status.success()) {
            writeln!(
                out,
                "not run: a build of {package} with Rust {toolchain}, which is not installed; clippy finds \
                items of std that are newer"
            )?;
            continue;
        }
        if !check_with(&toolchain, package, folder)? {
            writeln!(out, "\nFAILED: {package} does not compile with Rust {toolchain}")?;
            holds = false;
        }
    }
    Ok(holds)
}

/// Compiles a package with a toolchain, as the dependency of a program. The workspace has packages
/// whose manifests need a newer one.
fn check_with(toolchain: &str, package: &str, folder: &str) -> Result<bool, Failure> {
    let scratch = Scratch::new()?;
    let program = scratch.0.join("oldest");
    fs::create_dir_all(program.join("src"))?;
    let folder = build::root().join(folder);
    let manifest = format!(
        "[package]\nname = \"oldest\"\nedition = \"2021\"\n[dependencies]\n{package} = {{ path = {folder:?} }}\n\
         [workspace]\n"
    );
    fs::write(program.join("Cargo.toml"), manifest)?;
    fs::write(program.join("src/main.rs"), "fn main() {}\n")?;
    let mut rustup = Command::new("rustup");
    rustup.args(["run", toolchain, "cargo", "check", "--quiet"]).current_dir(program);
    rustup.env("CARGO_TARGET_DIR", build::target()?.join("oldest"));
    // Of the dependencies, the versions for this toolchain.
    rustup.env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
    Ok(rustup.status()?.success())
}

/// Returns the minor Rust version of a package, and the largest of its dependencies with its name.
fn versions(package: &str) -> Result<(u32, (u32, String)), Failure> {
    let metadata = build::cargo().args(["metadata", "--format-version", "1"]).output()?.stdout;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let packages = metadata["packages"].as_array().ok_or("cargo lists no packages")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let known: HashMap<(String, String), u32> = packages
        .iter()
        .filter_map(|found| {
            let version = minor(found["rust_version"].as_str()?)?;
            Some(((text(&found["name"]), text(&found["version"])), version))
        })
        .collect();
    let tree = ["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let tree = build::cargo().args(tree).args(["--package", package]).output()?.stdout;
    let tree = String::from_utf8(tree)?;
    let used: BTreeSet<(String, String)> = tree.lines().filter_map(name_and_version).collect();
    let (own, others): (Vec<_>, Vec<_>) = used
        .into_iter()
        .filter_map(|key| Some((*known.get(&key)?, key.0)))
        .partition(|(_, name)| name == package);
    let ours = own.first().ok_or_else(|| format!("{package} names no Rust"))?.0;
    let theirs = others.into_iter().filter(|(_, name)| !name.starts_with("memreport")).max();
    Ok((ours, theirs.ok_or_else(|| format!("{package} has no dependencies"))?))
}

/// Parses a line such as `syn v3.0.9` or `memreport v0.1.0 (/path)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ');
    Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
}

/// Parses `1.85` or `1.85.0` into 85.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_dependency_needs_a_newer_rust_than_is_promised() {
        for (package, _) in PROMISING {
            let (ours, (theirs, by)) = versions(package).unwrap();
            assert!(ours >= theirs, "{package}: 1.{ours}, and {by} is for 1.{theirs}");
            assert!(theirs >= 60, "{package}: found nothing but {by}");
        }
    }

    #[test]
    fn lines_of_cargo_are_read() {
        assert_eq!(minor("1.85.1"), Some(85));
        assert_eq!(minor("1.71"), Some(71));
        let found = name_and_version("memreport v0.1.0 (/somewhere)").unwrap();
        assert_eq!(found, ("memreport".to_owned(), "0.1.0".to_owned()));
        assert_eq!(name_and_version(""), None);
    }
}
