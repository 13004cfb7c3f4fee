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
    let about_memory = build::release("about-memory", "about-memory")?;
    let subject = build::release("memreport-tests", "fulltext")?;
    let mut run = Command::new(about_memory);
    run.args(["run", "--top", "5", "--"])
        .arg(subject)
        .args(["--plant", "unreported", "--plant", "double"])
        .arg(folder);
    Ok(run.status()?.success())
}
