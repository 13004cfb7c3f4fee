//! Fresh dumps of our own programs, one in each mode.

use std::fs;
use std::io;
use std::process::Command;

use super::cases::Case;
use crate::build;
use crate::scratch::Scratch;

/// The argument of the subject, and its `$DMD`.
const RUNS: [(&str, &str); 5] = [
    ("three-sizes", "--mode=live"),
    ("three-sizes", "--mode=dark-matter --stacks=partial"),
    ("short-lived", "--mode=cumulative"),
    ("pointing", "--mode=scan"),
    ("sample", "--mode=profile --sample-bytes=16K"),
];

/// Returns a named comparison for each mode.
pub(crate) fn cases(scratch: &Scratch) -> io::Result<Vec<(String, Case)>> {
    let subject = build::release("memreport-tests", "modes").map_err(io::Error::other)?;
    let mut cases = Vec::new();
    for (what, variable) in RUNS {
        let report = scratch.0.join("written.json");
        let run = Command::new(&subject).arg(what).arg(&report).env("DMD", variable).output()?;
        if !run.status.success() {
            let message = String::from_utf8_lossy(&run.stderr).into_owned();
            return Err(io::Error::other(format!("{what} under {variable}: {message}")));
        }
        let dump = fs::read_to_string(scratch.0.join("written.dmd.json"))?;
        let options = vec!["--no-fix-stacks".to_owned()];
        let case = Case { options, dumps: vec![dump], zipped: false };
        cases.push((format!("{what} under {variable}"), case));
    }
    Ok(cases)
}
