//! The page's scripts without a browser: their own tests under node, and their types under tsc.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Bench;
use crate::build;
use crate::failure::Failure;
use crate::on_path;

const TESTS: &str = "about-memory/src/render/page/assets/tests";

/// Runs the tests of the scripts, after a test that must fail.
pub(crate) fn tests(bench: &Bench) -> Result<String, Failure> {
    let node = match on_path::find(&["node", "nodejs"], "nodejs") {
        Ok(node) => node,
        Err(missing) => return Ok(format!("not run: {missing}")),
    };
    let planted = bench.folder.join("planted.test.js");
    std::fs::write(&planted, "require('node:test')('planted', () => { throw new Error(); });")?;
    if Command::new(&node).arg("--test").arg(&planted).output()?.status.success() {
        return Err("node does not notice a test that fails".into());
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(build::root().join(TESTS))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".test.js"))
        .collect();
    files.sort();
    let output = Command::new(node).arg("--test").args(&files).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("the tests of the scripts fail:\n{text}").into());
    }
    // Its own format where standard output is no terminal; of later versions another one.
    let passed = text.lines().find_map(|line| line.split_once("pass ")).map(|(_, count)| count);
    match passed.and_then(|count| count.trim().parse::<usize>().ok()) {
        Some(count) if count > 0 => Ok(format!("{count} tests pass")),
        _ => Err(format!("no tests have run:\n{text}").into()),
    }
}

/// Checks the types of the scripts.
pub(crate) fn types(_bench: &Bench) -> Result<String, Failure> {
    let packages = match packages() {
        Ok(packages) => packages,
        Err(missing) => return Ok(format!("not run: {missing}")),
    };
    let mut tsc = Command::new(packages.join(".bin/tsc"));
    let output = tsc.arg("-p").arg(build::root().join(TESTS).join("tsconfig.json")).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("the types of the scripts do not fit:\n{text}").into());
    }
    Ok("no error".into())
}

/// Returns the folder of the packages that the checks need, installed at the first call.
pub(crate) fn packages() -> Result<PathBuf, String> {
    let folder = build::root().join("target/npm");
    let packages = folder.join("node_modules");
    let is_there = |path: &str| Path::exists(&packages.join(path));
    if is_there("axe-core/axe.min.js") && is_there(".bin/tsc") {
        return Ok(packages);
    }
    let npm = on_path::find(&["npm"], "npm")?;
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut install = Command::new(npm);
    install.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
    let output = install.arg(&folder).args(["axe-core@4", "typescript@5"]).output();
    match output {
        Ok(output) if output.status.success() => Ok(packages),
        _ => Err("npm cannot install axe-core and typescript".into()),
    }
}
