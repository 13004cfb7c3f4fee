//! Dumps and recordings of real programs, with their expected sums.
//!
//! Sums of dumps are computed here from the file itself; those of recordings come from
//! `about-memory recording`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::build;
use crate::failure::Failure;

/// A dump or a recording with its sums.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) sums: Sums,
    /// The sums of a recording.
    pub(crate) recorded: Option<Recorded>,
}

/// Bytes in the blocks of a dump, or of a recording at its end.
///
/// Sums of a sample are estimates, rounded for each record.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Bytes in formats with room for one amount: all of a dump, or the live blocks of a recording.
    pub(crate) bytes: i64,
    /// The number of these blocks; `None` for a sampled recording, where it depends on rounding.
    pub(crate) blocks: Option<i64>,
    /// All allocated bytes.
    pub(crate) allocated: i64,
    pub(crate) allocated_blocks: Option<i64>,
    /// The live bytes, if the dump has them.
    pub(crate) live: Option<i64>,
    /// The unreported, once-reported and twice-reported bytes, if the dump has them.
    pub(crate) classes: Option<[i64; 3]>,
}

/// The output of `about-memory recording`, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Blocks that were live at the peak.
    pub(crate) at_peak: i64,
    /// The exact sum at the peak.
    pub(crate) peak_sum: i64,
    /// A function and the exact bytes that it leaked, if known.
    pub(crate) kept: Option<(&'static str, i64)>,
    /// A function whose blocks were all freed, by another thread.
    pub(crate) given_back: &'static str,
}

/// Writes the dumps and the recordings to a folder.
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
    // The dumps that Firefox's DMD writes: without our additions.
    for (name, of) in [("firefox", "dark-matter"), ("firefox-cumulative", "cumulative")] {
        let mut dump: Value =
            serde_json::from_slice(&fs::read(folder.join(format!("{of}.dmd.json")))?)?;
        dump.as_object_mut().ok_or("a dump is an object")?.remove("memreport");
        let file = folder.join(format!("{name}.dmd.json"));
        fs::write(&file, dump.to_string())?;
        subjects.push(subject(name, file)?);
    }
    for (name, variable, kept) in [
        ("recording", "--mode=live", Some(FORGOTTEN)),
        ("sampled-recording", "--mode=profile --sample-bytes=8K", None),
    ] {
        let mut run = Command::new(dev("memreport-tests", "leaking")?);
        run.arg("3").env("MEMREPORT_RECORD", folder.join(format!("{name}-%p.rec")));
        let pid = ran(name, run, variable)?;
        subjects.push(recorded(name, folder.join(format!("{name}-{pid}.rec")), kept)?);
    }
    Ok(subjects)
}

/// The function in which the program `leaking` leaks, and its bytes.
///
/// glibc's blocks are 8 bytes larger than each of the 1,000 requests for 10,000 bytes.
const FORGOTTEN: (&str, i64) = ("leaking::forgets", 1000 * 10_008);

/// The program `leaking` while it runs for a minute.
pub(crate) struct Leaking {
    program: Child,
    file: PathBuf,
}

impl Leaking {
    pub(crate) fn start(folder: &Path) -> Result<Self, Failure> {
        let mut run = Command::new(dev("memreport-tests", "leaking")?);
        run.arg("60").env("MEMREPORT_RECORD", folder.join("leak-%p.rec"));
        let program = run.env("DMD", "--mode=live").spawn()?;
        let file = folder.join(format!("leak-{}.rec", program.id()));
        Ok(Leaking { program, file })
    }

    /// Waits for the end of the program and returns its recording.
    pub(crate) fn recorded(mut self) -> Result<Subject, Failure> {
        let status = self.program.wait()?;
        if !status.success() {
            return Err(format!("the program that leaks failed: {status}").into());
        }
        recorded("leak", self.file, Some(FORGOTTEN))
    }
}

/// Returns a recording of the program `leaking`, with the sums of `about-memory recording`.
fn recorded(
    name: &'static str,
    file: PathBuf,
    kept: Option<(&'static str, i64)>,
) -> Result<Subject, Failure> {
    let mut ask = Command::new(dev("about-memory", "about-memory")?);
    let answer = ask.arg("recording").arg(&file).arg("--json").output()?;
    let summary: Value = serde_json::from_slice(&answer.stdout)?;
    if summary["lost"] != 0 {
        return Err(format!("the recording of {name} has lost {} events", summary["lost"]).into());
    }
    let bytes = |which: &str| {
        summary[which]["bytes"].as_i64().ok_or_else(|| format!("a recording without {which}"))
    };
    let is_exact = summary["sampleBytes"].is_null();
    #[expect(clippy::cast_possible_truncation, reason = "whole numbers far below 2^53")]
    let blocks = |which: &str| {
        let blocks = summary[which]["blocks"].as_f64().map(|blocks| blocks as i64);
        blocks.filter(|_| is_exact)
    };
    let sums = Sums {
        bytes: bytes("retained")?,
        blocks: blocks("retained"),
        allocated: bytes("allocated")?,
        allocated_blocks: blocks("allocated"),
        live: Some(bytes("retained")?),
        classes: None,
    };
    let peak_sum = summary["peak"]["live"].as_i64().ok_or("a recording without a peak")?;
    let given_back = "leaking::hands_over";
    let recorded = Recorded { at_peak: bytes("atPeak")?, peak_sum, kept, given_back };
    Ok(Subject { name, file, sums, recorded: Some(recorded) })
}

/// Builds a program of the workspace in cargo's default profile.
pub(crate) fn dev(package: &str, program: &str) -> Result<PathBuf, Failure> {
    build::executable(build::cargo().args(["build", "--package", package]), program)
}

fn dumped(
    name: &'static str,
    run: Command,
    variable: &str,
    report: &Path,
) -> Result<Subject, Failure> {
    ran(name, run, variable)?;
    subject(name, report.with_extension("dmd.json"))
}

/// Runs a program to its end. Returns the number of its process.
fn ran(name: &str, mut run: Command, variable: &str) -> Result<u32, Failure> {
    let mut child = run.env("DMD", variable).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = child.wait()?;
    if status.success() {
        return Ok(child.id());
    }
    Err(format!("the program for {name} failed: {status}").into())
}

fn subject(name: &'static str, file: PathBuf) -> Result<Subject, Failure> {
    let sums = sums(&serde_json::from_slice(&fs::read(&file)?)?)?;
    Ok(Subject { name, file, sums, recorded: None })
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
        blocks: Some(blocks),
        allocated: bytes,
        allocated_blocks: Some(blocks),
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
        let expected = Sums {
            bytes: 305,
            blocks: Some(7),
            allocated: 305,
            allocated_blocks: Some(7),
            live: Some(305),
            classes: Some([48, 250, 7]),
        };
        assert_eq!(sums(&dump).unwrap(), expected);
    }
}
