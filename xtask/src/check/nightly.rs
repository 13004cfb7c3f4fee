//! `cargo xtask nightly [WORD…]`: the checks that take too long for each change, hours together.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;

use super::ci::{ALL_DOCS, steps};
use crate::build;
use crate::failure::Failure;

/// The words behind `cargo xtask`, the quickest first.
const COMMANDS: [&[&str]; 22] = [
    &["api"],
    &["semver"],
    &["deny"],
    &["workflows"],
    &["package"],
    &["features"],
    &["sanitize"],
    &["platforms"],
    &["release", "--twice"],
    &["stress"],
    &["stress", "live"],
    &["stress", "log"],
    &["stress", "hooks"],
    &["stress", "snapshots"],
    &["stress", "leaks"],
    &["suite"],
    &["foreign"],
    &["foreign", "c-libraries"],
    &["clients"],
    &["stress", "exhaustion", "1800"],
    &["fuzz"],
    &["mutants"],
];

/// The words of a check that did not run, or of a part of it.
const NOT_RUN: &str = "not run";

/// The end of a check.
struct Done {
    name: String,
    holds: bool,
    seconds: u64,
    /// The lines that say what did not run, and why.
    not_run: Vec<String>,
}

/// Runs the checks whose names have one of the words, or all. Goes on after a failure, and ends
/// with a line for each. Returns `false` if one has failed, or, with `$CI`, did not run.
pub(crate) fn run(words: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let mut done = Vec::new();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    if is_wanted("docs") {
        let begin = Instant::now();
        let holds = steps(&[ALL_DOCS], out)?;
        let (name, seconds) = ("docs".to_owned(), begin.elapsed().as_secs());
        done.push(Done { name, holds, seconds, not_run: Vec::new() });
    }
    for command in COMMANDS {
        let name = command.join(" ");
        if is_wanted(&name) {
            writeln!(out, "\n# cargo xtask {name}")?;
            done.push(check(name, command, out)?);
        }
    }
    if done.is_empty() {
        return Err(format!("no check has {} in its name", words.join(" or ")).into());
    }
    let mut all_hold = true;
    let must_run = std::env::var_os("CI").is_some();
    writeln!(out)?;
    for Done { name, holds, seconds, not_run } in done {
        writeln!(out, "{seconds:>6} s  {}  {name}", if holds { "holds " } else { "FAILED" })?;
        not_run.iter().try_for_each(|line| writeln!(out, "          {line}"))?;
        all_hold &= holds && (not_run.is_empty() || !must_run);
    }
    Ok(all_hold)
}

/// Runs one check, and shows what it prints.
fn check(name: String, command: &[&str], out: &mut dyn Write) -> Result<Done, Failure> {
    let begin = Instant::now();
    let mut child = build::cargo().arg("xtask").args(command).stdout(Stdio::piped()).spawn()?;
    let mut not_run = Vec::new();
    let printed = child.stdout.take().ok_or("no output")?;
    for line in BufReader::new(printed).lines() {
        let line = line?;
        writeln!(out, "{line}")?;
        if says_not_run(&line) {
            not_run.push(line.trim().to_owned());
        }
    }
    let holds = child.wait()?.success();
    Ok(Done { name, holds, seconds: begin.elapsed().as_secs(), not_run })
}

/// Returns whether a line says that something did not run. Sums of nothing do not, and neither does
/// code that was to be compiled and no more.
fn says_not_run(line: &str) -> bool {
    line.match_indices(NOT_RUN).any(|(at, _)| {
        !matches!(line[..at].split_whitespace().next_back(), Some("0" | "compiled,"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_what_did_not_run_are_found() {
        for line in
            ["clients firefox: not run: Firefox is not installed", "405 caught, 10 not run: 90 %"]
        {
            assert!(says_not_run(line), "{line}");
        }
        let compiled = "macos: aarch64-apple-darwin: compiled, not run (memreport)";
        for line in ["405 caught, 6 gone, 0 not run: 95 %", "it ran", compiled] {
            assert!(!says_not_run(line), "{line}");
        }
    }
}
