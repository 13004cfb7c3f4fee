//! Checks with real clients. Each reports that it passed, that it failed, or why it did not run.

mod annotate;
mod browser;
mod dmd_py;
mod exports;
mod file_server;
mod firefox;
mod fleet;
mod http;
mod prometheus;
mod service;
mod shells;
mod webdriver;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::build;
use crate::failure::Failure;

/// A check by its name. It takes the command-line arguments behind the name.
type Check = (&'static str, fn(&[&str], &mut dyn Write) -> Result<bool, Failure>);

const CHECKS: [Check; 10] = [
    ("snapshot", |_, out| snapshot(out)),
    ("firefox", firefox::run),
    ("browser", browser::run),
    ("prometheus", |_, out| prometheus::run(out)),
    ("dmd-py", |args, out| dmd_py::run(args.first().map(Path::new), out)),
    ("exports", exports::run_clients),
    ("fleet", fleet::run),
    ("pprof", |_, out| exports::run_service(out)),
    ("shells", |_, out| shells::run(out)),
    ("annotate", annotate::run),
];

/// Checks that a real Firefox shows a new snapshot of ours exactly as we show it.
fn snapshot(out: &mut dyn Write) -> Result<bool, Failure> {
    let subject = build::release("memreport-tests", "books")?;
    let folder = std::env::temp_dir().join(format!("xtask-snapshot-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("books.json.gz");
    let status = Command::new(subject).arg(&file).env("DMD", "1").status()?;
    let held = if status.success() { firefox::shows_as_we_do(&file, out)? } else { false };
    fs::remove_dir_all(&folder)?;
    Ok(held)
}

/// Makes the pictures of the README and the guide again, or with a folder and `--every` pictures of
/// all views at several widths.
pub(crate) fn pictures(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let guide = build::root().join("docs/guide/src/pictures");
    let folder = guide.to_string_lossy();
    let folder = args.first().copied().unwrap_or(&folder);
    browser::run(&[&["--pictures", folder], args.get(1..).unwrap_or_default()].concat(), out)
}

/// Runs one check by name, or all. Returns `false` when one has failed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let wanted = args.first();
    let chosen: Vec<&Check> =
        CHECKS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "no client is called {}; there are: {}",
            args.join(" "),
            names.join(", ")
        )
        .into());
    }
    let mut all_hold = true;
    for (_, check) in chosen {
        all_hold &= check(args.get(1..).unwrap_or_default(), out)?;
    }
    Ok(all_hold)
}
