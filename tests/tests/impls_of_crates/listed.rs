//! Tests that the documents name every feature.

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

#[test]
fn every_crate_is_turned_on_here_and_described() {
    let manifest = read("memreport/Cargo.toml");
    let document = read("docs/guide/src/reference/impls.md");
    let umbrella = manifest.split("all-crates = [").nth(1).expect("the feature is there");
    let umbrella = umbrella.split(']').next().expect("the list ends");
    let crates = crates(&manifest);
    assert!(crates.len() > 30, "{crates:?}");
    for name in crates.into_iter().chain(["serde_json"]) {
        assert!(umbrella.contains(&format!("\"{name}\"")), "{name} is missing in `all-crates`");
        assert!(document.contains(&format!("`{name}`")), "{name} is missing in impls.md");
    }
}
