//! The demo: a real program under DMD, on real text.

use std::process::Command;

use crate::build;
use crate::failure::Failure;

/// Runs the full-text index under `about-memory run`, with one unreported structure and one that
/// two reporters report.
pub(crate) fn run(args: &[&str]) -> Result<bool, Failure> {
    let folder = match args {
        [] => build::root().to_owned(),
        [folder] => folder.into(),
        _ => return Err("usage: cargo xtask demo [FOLDER]".into()),
    };
    // In the profile of the tests. One call of cargo builds what both programs share once. The
    // demo prints one tree, for which about-memory needs no features.
    let mut build = build::cargo();
    build.args(["build", "--package", "about-memory", "--package", "memreport-tests"]);
    build.arg("--no-default-features");
    let [about_memory, subject] = build::executables(&mut build, ["about-memory", "fulltext"])?;
    let mut run = Command::new(about_memory);
    run.args(["run", "--top", "5", "--"])
        .arg(subject)
        .args(["--plant", "unreported", "--plant", "double"])
        .arg(folder);
    Ok(run.status()?.success())
}
