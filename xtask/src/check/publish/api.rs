//! `cargo xtask api [--bless]`: the public items of each library, compared with `docs/api`.
//!
//! cargo-public-api lists them, from what rustdoc of the nightly toolchain writes.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use crate::build;
use crate::failure::Failure;

/// The libraries that other programs use.
const LIBRARIES: [&str; 4] =
    ["memreport-derive", "memreport", "memreport-dmd", "memreport-analysis"];

const INSTALL: &str =
    "not run: cargo-public-api is missing: cargo install cargo-public-api --locked";

/// Compares the items, or writes them. Returns `false` if they differ.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let is_blessing = args == ["--bless"];
    let mut version = build::cargo();
    version.args(["public-api", "--version"]).stderr(Stdio::null());
    if !version.output().is_ok_and(|output| output.status.success()) {
        writeln!(out, "{INSTALL}")?;
        return Ok(true);
    }
    let mut holds = true;
    for library in LIBRARIES {
        let items = items(library)?;
        let file = file(library);
        if is_blessing {
            fs::create_dir_all(file.parent().unwrap_or(&file))?;
            fs::write(&file, &items)?;
        }
        let listed = fs::read_to_string(&file).unwrap_or_default();
        let changes = changes(&listed, &items);
        writeln!(out, "{library}: {} items, {} changes", items.lines().count(), changes.len())?;
        for change in &changes {
            writeln!(out, "  {change}")?;
        }
        holds &= changes.is_empty();
    }
    if !holds {
        writeln!(
            out,
            "FAILED: if the changes are meant: cargo xtask api --bless, and the changelog"
        )?;
    }
    Ok(holds)
}

fn file(library: &str) -> PathBuf {
    build::root().join(format!("docs/api/{library}.txt"))
}

/// Returns the public items of a library with all features, a line each. What every type has by
/// itself is left out.
fn items(library: &str) -> Result<String, Failure> {
    let mut cargo = build::cargo();
    cargo.args(["public-api", "--package", library, "--all-features", "-sss", "--color=never"]);
    // Hidden items are not public, and rustdoc leaves them out.
    cargo.env("CARGO_TARGET_DIR", build::root().join("target/api")).stderr(Stdio::inherit());
    let output = cargo.output()?;
    if !output.status.success() {
        return Err(format!("{library}: its items cannot be listed").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns what was added and what is gone, sorted.
fn changes(before: &str, after: &str) -> Vec<String> {
    let [before, after] = [before, after].map(|text| text.lines().collect::<BTreeSet<_>>());
    let gone = before.difference(&after).map(|item| format!("- {item}"));
    gone.chain(after.difference(&before).map(|item| format!("+ {item}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_its_list() {
        for library in LIBRARIES {
            let items = fs::read_to_string(file(library)).expect("cargo xtask api --bless");
            assert!(items.lines().count() > 2, "{library}");
        }
    }

    #[test]
    fn what_is_added_or_gone_is_a_change_and_the_order_is_not() {
        assert_eq!(changes("b\na\n", "a\nb\n"), Vec::<String>::new());
        assert_eq!(changes("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
    }
}
