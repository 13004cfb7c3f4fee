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
    // The profile of the tests, which need most of it again. The demo prints one tree.
    let mut printing = build::cargo();
    printing.args(["build", "--package", "about-memory", "--no-default-features"]);
    let about_memory = build::executable(&mut printing, "about-memory")?;
    let subject = build::debug("memreport-tests", "fulltext")?;
    let mut run = Command::new(about_memory);
    run.args(["run", "--top", "5", "--"])
        .arg(subject)
        .args(["--plant", "unreported", "--plant", "double"])
        .arg(folder);
    Ok(run.status()?.success())
}
