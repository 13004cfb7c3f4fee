//! Checks with real clients. Each says whether it ran and passed, ran and failed, or did not run, and why.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::{Failure, browser, build, dmd_py, exports, firefox, prometheus};

/// A check by its name; it is handed the words after it.
type Check = (&'static str, fn(&[&str], &mut dyn Write) -> Result<bool, Failure>);

const CHECKS: [Check; 7] = [
    ("snapshot", |_, out| snapshot(out)),
    ("firefox", |args, out| {
        let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        Ok(firefox::run(&args, out)? == ExitCode::SUCCESS)
    }),
    ("browser", browser::run),
    ("prometheus", |_, out| prometheus::run(out)),
    ("dmd-py", |args, out| Ok(dmd_py::run(args.first().map(Path::new), out)?)),
    ("exports", |args, out| exports::run_clients(args, out)),
    ("pprof", |_, out| exports::run_service(out)),
];

/// A snapshot that a program of ours has just written, in a real Firefox: it shows what we show.
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

/// Runs one check by name, or all. `false` when one has failed.
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
