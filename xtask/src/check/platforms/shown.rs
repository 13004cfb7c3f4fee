//! Snapshots that a program of another system writes, shown by that system's `about-memory` and by
//! the one of this system: the text must be the same.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use super::{Platform, cargo_for, for_wine, runner};
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The arguments of `about-memory`, and a part of the answer.
const COMMANDS: [(&[&str], &str); 8] = [
    (&["first.json.gz"], "── cache"),
    (&["show", "first.json.gz", "-v"], " B ("),
    (&["first.json.gz", "--json"], "explicit"),
    (&["first.json.gz", "--descriptions"], "Rendered pages."),
    (&["explain-rss", "first.json.gz"], "heap-allocated by reporter"),
    (&["metrics", "first.json.gz"], "# EOF"),
    (&["first.json.gz", "-f", "sessions"], "sessions"),
    // The same memory is in both, but not of the same process.
    (&["diff", "first.json.gz", "second.json.gz", "-v"], "Total resident memory"),
];

/// Runs the example, and both `about-memory`. Returns whether all answers are equal.
pub(super) fn run(platform: &Platform, out: &mut dyn Write) -> Result<bool, Failure> {
    let name = platform.name;
    let mut cargo = cargo_for(platform, &["build", "--package", "memreport"]);
    let example = build::example(&mut cargo, "reporters")?;
    let mut cargo = cargo_for(platform, &["build", "--package", "about-memory"]);
    let theirs = build::executable(&mut cargo, "about-memory")?;
    let ours = build::debug("about-memory", "about-memory")?;
    let folder = Scratch::new()?;
    for file in ["first.json.gz", "second.json.gz"] {
        let status = there(platform, &example, &folder).arg(file).status()?;
        if !status.success() {
            writeln!(out, "{name}, snapshots: FAILED: the example ended with {status}")?;
            return Ok(false);
        }
    }
    let mut holds = true;
    for (words, part) in COMMANDS {
        let theirs = there(platform, &theirs, &folder).args(words).output()?;
        let ours = Command::new(&ours).args(words).current_dir(&folder.0).output()?;
        let verdict = compare(&ours, &theirs, part);
        holds &= verdict.is_ok();
        let said = verdict.unwrap_or_else(|fault| format!("FAILED: {fault}"));
        writeln!(out, "{name}, about-memory {}: {said}", words.join(" "))?;
    }
    Ok(holds)
}

/// Returns a command that runs a program of the platform in the folder.
fn there(platform: &Platform, program: &Path, folder: &Scratch) -> Command {
    let mut command = runner(platform, program);
    for_wine(&mut command);
    command.current_dir(&folder.0);
    command
}

/// Returns a sentence about two equal answers that contain this part.
///
/// # Errors
///
/// An answer is missing or wrong, or they differ.
fn compare(ours: &Output, theirs: &Output, part: &str) -> Result<String, String> {
    for (whose, output) in [("ours", ours), ("theirs", theirs)] {
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{whose} ended with {}: {said}", output.status));
        }
    }
    let text = String::from_utf8_lossy(&ours.stdout);
    if !text.contains(part) {
        return Err(format!("`{part}` is not in the answer: {text}"));
    }
    if ours.stdout != theirs.stdout {
        let theirs = String::from_utf8_lossy(&theirs.stdout);
        let differs = text.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
        return Err(match differs {
            Some((ours, theirs)) => format!("`{theirs}` is `{ours}` here"),
            None => "one of them is longer".to_owned(),
        });
    }
    if ours.stderr != theirs.stderr {
        return Err(format!("the notes differ: {}", String::from_utf8_lossy(&theirs.stderr)));
    }
    Ok(format!("the same {} lines", text.lines().count()))
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    fn output(stdout: &str, stderr: &str) -> Output {
        Output { status: ExitStatus::default(), stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn answers_that_differ_are_seen() {
        let ours = output("a\nb\n", "");
        assert_eq!(compare(&ours, &ours, "b"), Ok("the same 2 lines".to_owned()));
        let table = [
            (output("a\nc\n", ""), "b", "`c` is `b` here"),
            (output("a\n", ""), "b", "one of them is longer"),
            (output("a\nb\n", "note: c"), "b", "the notes differ: note: c"),
            (output("a\nb\n", ""), "d", "`d` is not in the answer: a\nb\n"),
        ];
        for (theirs, part, fault) in table {
            assert_eq!(compare(&ours, &theirs, part), Err(fault.to_owned()));
        }
    }
}
