//! Dumps of real programs, in all modes, and what they amount to: added up here, from the file's own words.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Failure, build};

/// A dump, and its books.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) dump: PathBuf,
    pub(crate) sums: Sums,
}

/// Bytes in the blocks of a dump. Those of a sample are estimates, rounded for each record.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    /// All of them.
    pub(crate) bytes: i64,
    pub(crate) blocks: i64,
    /// Those that live, if the dump tells.
    pub(crate) live: Option<i64>,
    /// Those that nobody reports, one reports, several report: if the dump tells.
    pub(crate) classes: Option<[i64; 3]>,
}

/// Takes the dumps into a folder.
pub(crate) fn take(folder: &Path) -> Result<Vec<Subject>, Failure> {
    let modes = dev("memreport-tests", "modes")?;
    let fulltext = dev("memreport-tests", "fulltext")?;
    let mut subjects = Vec::new();
    let text = build::root().join("dmd/src");
    let mut run = Command::new(fulltext);
    let report = folder.join("dark-matter.json");
    run.args(["--plant", "unreported", "--plant", "double", "--snapshot"]).arg(&report).arg(text);
    subjects.push(dumped("dark-matter", run, "1", &report)?);
    for (name, case, variable) in [
        ("live", "three-sizes", "--mode=live"),
        ("cumulative", "short-lived", "--mode=cumulative"),
        ("scan", "pointing", "--mode=scan"),
        ("profile", "sample", "--mode=profile --sample-bytes=16K"),
    ] {
        let report = folder.join(format!("{name}.json"));
        let mut run = Command::new(&modes);
        run.arg(case).arg(&report);
        subjects.push(dumped(name, run, variable, &report)?);
    }
    // As Firefox's DMD writes them: without what is ours.
    for (name, of) in [("firefox", "dark-matter"), ("firefox-cumulative", "cumulative")] {
        let mut dump: Value =
            serde_json::from_slice(&fs::read(folder.join(format!("{of}.dmd.json")))?)?;
        dump.as_object_mut().ok_or("a dump is an object")?.remove("memreport");
        let file = folder.join(format!("{name}.dmd.json"));
        fs::write(&file, dump.to_string())?;
        subjects.push(subject(name, file)?);
    }
    Ok(subjects)
}

/// A program of the workspace, as `cargo build` makes it.
pub(crate) fn dev(package: &str, program: &str) -> Result<PathBuf, Failure> {
    build::executable(build::cargo().args(["build", "--package", package]), program)
}

fn dumped(
    name: &'static str,
    mut run: Command,
    variable: &str,
    report: &Path,
) -> Result<Subject, Failure> {
    let status = run.env("DMD", variable).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("the program for {name} failed: {status}").into());
    }
    subject(name, report.with_extension("dmd.json"))
}

fn subject(name: &'static str, dump: PathBuf) -> Result<Subject, Failure> {
    let sums = sums(&serde_json::from_slice(&fs::read(&dump)?)?)?;
    Ok(Subject { name, dump, sums })
}

/// Adds up the blocks of a dump.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "bytes are far below 2^53"
)]
fn sums(dump: &Value) -> Result<Sums, Failure> {
    let mode = dump["invocation"]["mode"].as_str().ok_or("a dump without a mode")?;
    let is_ours = dump["memreport"].is_object();
    let knows_live = mode != "cumulative" || is_ours;
    let knows_classes = mode == "dark-matter" || (mode == "scan" && is_ours);
    let (mut bytes, mut blocks, mut live, mut classes) = (0, 0, 0, [0; 3]);
    for block in dump["blockList"].as_array().ok_or("a dump without blocks")? {
        let number = |key: &str| block[key].as_i64();
        let num = number("num").unwrap_or(1);
        let weight = block["weight"].as_f64().unwrap_or(1.0);
        let times = |number: i64| (num as f64 * weight * number as f64).round() as i64;
        let size = times(number("req").unwrap_or(0)) + times(number("slop").unwrap_or(0));
        bytes += size;
        blocks += times(1);
        live += if block["freed"] == true { 0 } else { size };
        let reports = block["reps"].as_array().or(block["reportedBy"].as_array());
        classes[reports.map_or(0, Vec::len).min(2)] += size;
    }
    Ok(Sums {
        bytes,
        blocks,
        live: knows_live.then_some(live),
        classes: knows_classes.then_some(classes),
    })
}

#[cfg(test)]
mod tests {
    use super::{Sums, sums};

    #[test]
    fn blocks_are_added_up_by_class() {
        let dump = serde_json::json!({
            "invocation": {"mode": "dark-matter"},
            "blockList": [
                {"req": 10, "slop": 6, "num": 3},
                {"req": 100, "reps": ["A"], "weight": 2.5},
                {"req": 7, "reps": ["A", "B"]},
            ],
        });
        let expected = Sums { bytes: 305, blocks: 7, live: Some(305), classes: Some([48, 250, 7]) };
        assert_eq!(sums(&dump).unwrap(), expected);
    }
}
