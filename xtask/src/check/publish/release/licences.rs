//! The licences of all packages that a program is built from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::build;
use crate::failure::Failure;

/// The beginnings of names of files with a licence.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// Returns the licences of a package's dependencies on a target, and the number of these packages.
///
/// # Errors
///
/// cargo cannot tell the dependencies, or a package names no licence.
pub(super) fn of(package: &str, target: &str) -> Result<(String, usize), Failure> {
    let mut cargo = build::cargo();
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform", target]);
    let output = cargo.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = reached(&metadata, package)?;
    let mut text = String::from("The program contains these packages, or parts of them.\n");
    let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    for package in packages {
        // Packages of this workspace have no source; their licences are beside this file.
        if package["source"].is_null() {
            continue;
        }
        count += 1;
        let (name, version) = (word(package, "name"), word(package, "version"));
        let licence = package["license"].as_str().or(package["license_file"].as_str());
        let licence = licence.ok_or_else(|| format!("{name} {version} names no licence"))?;
        writeln!(text, "\n{name} {version}: {licence}\n  {}", word(package, "repository"))?;
        let folder = Path::new(word(package, "manifest_path")).parent();
        for file in texts(folder.unwrap_or(Path::new("")))? {
            same.entry(file).or_default().push(format!("{name} {version}"));
        }
    }
    // Many have the same text, which is written once.
    for (licence, packages) in same {
        write!(text, "\n{}\n{}:\n\n{}\n", "=".repeat(80), packages.join(", "), licence.trim_end())?;
    }
    Ok((text, count))
}

/// Returns the packages that are built into this one: without tools of the build and of tests.
fn reached<'m>(metadata: &'m Value, package: &str) -> Result<Vec<&'m Value>, Failure> {
    let list = |value: &'m Value| value.as_array().map(Vec::as_slice).unwrap_or_default();
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).iter().map(|package| (word(package, "id"), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (word(node, "id"), node)).collect();
    let first = packages.values().find(|found| word(found, "name") == package);
    let mut todo = vec![word(first.ok_or("no such package")?, "id")];
    let mut seen = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let is_built_in = |kind: &Value| kind["kind"].is_null();
        let built_in = list(&node["deps"])
            .iter()
            .filter(|dependency| list(&dependency["dep_kinds"]).iter().any(is_built_in));
        todo.extend(built_in.map(|dependency| word(dependency, "pkg")));
    }
    let mut found: Vec<&Value> = seen.iter().filter_map(|id| packages.get(id).copied()).collect();
    found.sort_by_key(|package| (word(package, "name"), word(package, "version")));
    Ok(found)
}

/// Returns the texts of the licences in a folder.
fn texts(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut files: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let is_licence = |file: &&std::path::PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.to_uppercase();
        file.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    };
    let mut texts = Vec::new();
    for file in files.iter().filter(is_licence) {
        texts.push(String::from_utf8_lossy(&fs::read(file)?).replace("\r\n", "\n"));
    }
    Ok(texts)
}

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_have_licences_and_tools_of_tests_are_left_out() {
        let (text, count) = of("memreport-dmd", "x86_64-unknown-linux-gnu").expect("metadata");
        assert!(count > 5, "{count}");
        assert!(text.contains("\ngimli "), "it reads the tables of stacks");
        assert!(!text.contains("\nproptest "), "it is for tests");
        assert!(!text.contains("memreport-analysis"), "its licence is beside the file");
        assert!(text.contains("Permission is hereby granted, free of charge"));
    }
}
