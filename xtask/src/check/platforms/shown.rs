//! Files that are shown by the `about-memory` of another system and by the one of this system, with
//! the same bytes: snapshots that a program of the other system writes, and files of Linux.

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

/// The same for files of Linux in this repository, whose modules are on neither machine.
const OF_LINUX: [(&[&str], &str); 18] = [
    (&["report/firefox.json.gz"], "explicit"),
    (&["explain-rss", "report/memreport.json"], "/proc/self/statm"),
    (&["heap", "tree", "dump/dark-matter.json.gz"], " live bytes"),
    (&["heap", "tree", "dump/cumulative.json"], " bytes in "),
    (&["heap", "diff", "dump/dark-matter.json", "dump/dark-matter.json.gz"], ""),
    (&["heap", "records", "--explain", "dump/dark-matter.json"], " bytes"),
    (&["heap", "records", "dump/dark-matter.json"], "about-memory heap records"),
    (&["heap", "coverage", "dump/dark-matter.json"], "%"),
    (&["heap", "census", "dump/dark-matter.json", "--by", "type,stack"], " blocks"),
    (&["heap", "dominators", "dump/scan.json"], " blocks"),
    (&["tree", "dump/scan.json"], " blocks"),
    (&["recording", "recording/packed.gz"], "peak"),
    (&["heap", "tree", "recording/packed"], " live bytes"),
    (&["export", "dump/dark-matter.json", "--to", "speedscope"], "$schema"),
    (&["export", "dump/dark-matter.json", "--to", "svg"], "<svg"),
    (&["export", "dump/dark-matter.json", "--to", "pprof"], ""),
    (&["inspect", "core/lists.core"], "in use"),
    (&["inspect", "core/lists.core", "--json"], "{"),
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
        let status = there(platform, &example, &folder.0).arg(file).status()?;
        if !status.success() {
            writeln!(out, "{name}, snapshots: FAILED: the example ended with {status}")?;
            return Ok(false);
        }
    }
    let pair = Pair { platform, ours: &ours, theirs: &theirs };
    let seeds = build::root().join("fuzz/seeds");
    let of_program = pair.compare_all(&folder.0, &COMMANDS, out)?;
    Ok(pair.compare_all(&seeds, &OF_LINUX, out)? && of_program)
}

/// The programs that are compared.
struct Pair<'a> {
    platform: &'a Platform,
    ours: &'a Path,
    theirs: &'a Path,
}

impl Pair<'_> {
    /// Runs both programs in a folder with each of these arguments. Returns whether all answers are
    /// equal.
    fn compare_all(
        &self,
        folder: &Path,
        commands: &[(&[&str], &str)],
        out: &mut dyn Write,
    ) -> Result<bool, Failure> {
        let mut holds = true;
        for (words, part) in commands {
            let theirs = there(self.platform, self.theirs, folder).args(*words).output()?;
            let ours = Command::new(self.ours).args(*words).current_dir(folder).output()?;
            let verdict = compare(&ours, &theirs, part);
            holds &= verdict.is_ok();
            let said = verdict.unwrap_or_else(|fault| format!("FAILED: {fault}"));
            writeln!(out, "{}, about-memory {}: {said}", self.platform.name, words.join(" "))?;
        }
        Ok(holds)
    }
}

/// Returns a command that runs a program of the platform in the folder.
fn there(platform: &Platform, program: &Path, folder: &Path) -> Command {
    let mut command = runner(platform, program);
    for_wine(&mut command);
    command.current_dir(folder);
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
    if without_reasons(&ours.stderr) != without_reasons(&theirs.stderr) {
        return Err(format!("the notes differ: {}", String::from_utf8_lossy(&theirs.stderr)));
    }
    Ok(format!("the same {} lines", text.lines().count()))
}

/// Returns notes without the words and the number in `(No such file or directory (os error 2))`,
/// which are the system's.
fn without_reasons(notes: &[u8]) -> String {
    let text = String::from_utf8_lossy(notes);
    let lines = text.lines().map(|line| match (line.find(" ("), line.find("))")) {
        (Some(start), Some(end)) if line[start..end].contains(" (os error ") => {
            format!("{}{}", &line[..start], &line[end..])
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
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
            (output("a\nb\n", "note: c (d)"), "b", "the notes differ: note: c (d)"),
            (output("a\nb\n", ""), "d", "`d` is not in the answer: a\nb\n"),
        ];
        for (theirs, part, fault) in table {
            assert_eq!(compare(&ours, &theirs, part), Err(fault.to_owned()));
        }
        let [ours, theirs] = ["No such file", "File not found."]
            .map(|reason| output("a", &format!("note: c ({reason} (os error 2)): name it")));
        assert!(compare(&ours, &theirs, "a").is_ok());
    }
}
