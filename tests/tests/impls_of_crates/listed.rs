//! Tests that every place which lists the features lists them all.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    fs::read_to_string(root.join(file)).expect("part of the workspace")
}

/// Returns the optional dependencies of `memreport` whose types it measures.
fn crates(manifest: &str) -> Vec<&str> {
    // Dependencies of `memreport` itself, and allocators, are inherited from the workspace.
    let is_one = |line: &&str| line.contains("optional = true") && !line.contains("workspace");
    manifest.lines().filter(is_one).filter_map(|line| line.split(" = ").next()).collect()
}

/// Returns the strings of a text that stand alone on a line.
fn names(list: &str) -> BTreeSet<&str> {
    let name = |line| str::trim(line).strip_suffix(',')?.strip_prefix('"')?.strip_suffix('"');
    list.lines().filter_map(name).collect()
}

/// Returns the features of `all-crates`.
fn features(manifest: &str) -> BTreeSet<&str> {
    let list = manifest.split("all-crates = [").nth(1).expect("the feature is there");
    names(list.split(']').next().expect("the list ends"))
}

#[test]
fn every_crate_is_turned_on_here_and_described() {
    let manifest = read("memreport/Cargo.toml");
    let document = read("docs/guide/src/reference/impls.md");
    let features = features(&manifest);
    let crates = crates(&manifest);
    let proof = read("tests/Cargo.toml");
    assert!(crates.len() > 30, "{crates:?}");
    for name in crates.into_iter().chain(["serde_json"]) {
        assert!(features.contains(name), "{name} is missing in `all-crates`");
        assert!(document.contains(&format!("\n| `{name}` |")), "{name} is missing in impls.md");
        // The locks of `lock_api` are tested as those of `parking_lot`.
        let is_listed = |end| proof.contains(&format!("\n{name}{end}"));
        let is_tested = name == "lock_api" || is_listed(" = ") || is_listed(".");
        assert!(is_tested, "{name} is missing in tests/Cargo.toml");
    }
}

#[test]
fn the_version_of_each_crate_is_stated() {
    let (manifest, workspace) = (read("memreport/Cargo.toml"), read("Cargo.toml"));
    let document = read("docs/guide/src/reference/impls.md").replace('\n', " ");
    for name in crates(&manifest).into_iter().chain(["serde_json"]) {
        let is_it = |line: &&str| line.split_once(" = ").is_some_and(|(start, _)| start == name);
        let lines = manifest.lines().chain(workspace.lines()).filter(is_it);
        // The first quoted text, apart from the name of the package.
        let mut numbers = lines.filter_map(|line| {
            let mut quoted = line.split('"').skip(1).step_by(2);
            quoted.find(|text| text.starts_with(|c: char| c.is_ascii_digit()))
        });
        let version = numbers.next().expect("it has a version");
        let stated = format!("`{name}` {version}");
        let is_stated = [",", "."].iter().any(|end| document.contains(&format!("{stated}{end} ")));
        assert!(is_stated, "impls.md has to state: {stated}");
    }
}

#[test]
fn every_feature_is_compiled_dumped_and_suggested() {
    let manifest = read("memreport/Cargo.toml");
    let features = features(&manifest);
    let modules = read("memreport/src/impls.rs") + &read("memreport/src/lib.rs");
    for name in &features {
        let condition = format!("feature = \"{name}\"");
        assert!(modules.contains(&condition), "{name} has no module in memreport/src/impls.rs");
    }
    for file in ["memreport/src/impls/features.rs", "dmd-analysis/src/analysis/suggest/features.rs"]
    {
        assert_eq!(names(&read(file)), features, "{file}");
    }
}
