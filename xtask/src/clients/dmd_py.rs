//! Our records against Mozilla's own dmd.py: generated dumps of all modes with random options must
//! print the same bytes.
//!
//! The script is not part of this repository: the argument is its path (`memory/replace/dmd/dmd.py`
//! in Firefox's source).

mod cases;
mod written;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output};

use self::cases::Case;
use crate::failure::Failure;
use crate::generate::random::Random;
use crate::scratch::Scratch;
use crate::{build, on_path};

/// The number of dumps, or pairs of dumps, to compare.
const CASES: u64 = 150;

/// Runs all cases. Returns whether dmd.py and we agree on all of them.
pub(crate) fn run(script: Option<&Path>, out: &mut dyn Write) -> Result<bool, Failure> {
    let Some(script) = script else {
        writeln!(out, "dmd-py: not run: give the path of Mozilla's dmd.py")?;
        return Ok(true);
    };
    if !script.is_file() {
        writeln!(out, "dmd-py: not run: there is no {}", script.display())?;
        return Ok(true);
    }
    if on_path::find(&["python3"], "python3").is_err() {
        writeln!(out, "dmd-py: not run: there is no python3 on the path")?;
        return Ok(true);
    }
    let ours = build::release("about-memory", "about-memory")?;
    let scratch = Scratch::new()?;
    let mut tally = Tally::default();
    for seed in 1..=CASES {
        let case = Case::generate(&mut Random::new(seed));
        let name = format!("case {seed} ({})", case.options.join(" "));
        tally.add(&name, compare(&case, script, &ours, &scratch.0)?, out)?;
    }
    for (name, case) in written::cases(&scratch)? {
        let verdict = match compare(&case, script, &ours, &scratch.0)? {
            // A dump that we wrote must be readable.
            Verdict::BothRefuse => Verdict::Differ("both refuse it".to_owned()),
            verdict => verdict,
        };
        tally.add(&name, verdict, out)?;
    }
    let Tally { equal, refused, differing } = tally;
    writeln!(out, "dmd-py: {equal} equal texts, {refused} refused by both, {differing} differing")?;
    // If both only refused every case, equality would mean nothing.
    Ok(differing == 0 && equal > CASES / 2)
}

#[derive(Default)]
struct Tally {
    equal: u64,
    refused: u64,
    differing: u64,
}

impl Tally {
    fn add(&mut self, name: &str, verdict: Verdict, out: &mut dyn Write) -> io::Result<()> {
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::BothRefuse => self.refused += 1,
            Verdict::Differ(difference) => {
                self.differing += 1;
                writeln!(out, "dmd-py: {name}: {difference}")?;
            }
        }
        Ok(())
    }
}

enum Verdict {
    Equal,
    BothRefuse,
    Differ(String),
}

fn compare(case: &Case, script: &Path, ours: &Path, scratch: &Path) -> io::Result<Verdict> {
    let mut theirs = Command::new("python3");
    theirs.arg(script);
    let theirs = answer(theirs, case, &scratch.join("theirs"))?;
    let mut command = Command::new(ours);
    command.arg("dmd");
    let ours = answer(command, case, &scratch.join("ours"))?;
    let message = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(match (theirs.status.success(), ours.status.success()) {
        (false, false) => Verdict::BothRefuse,
        (true, false) => Verdict::Differ(format!("only ours fails: {}", message(&ours).trim())),
        (false, true) => Verdict::Differ(format!("only dmd.py fails: {}", message(&theirs).trim())),
        (true, true) => {
            let texts = difference(&below_heading(&theirs.stdout), &below_heading(&ours.stdout));
            let remarks = difference(&results(&message(&theirs)), &results(&message(&ours)));
            texts.or(remarks).map_or(Verdict::Equal, Verdict::Differ)
        }
    })
}

/// Returns the first line that differs.
fn difference(theirs: &str, ours: &str) -> Option<String> {
    let mut lines = (1..).zip(theirs.lines().zip(ours.lines()));
    let differing: Option<(usize, _)> = lines.find(|(_, (theirs, ours))| theirs != ours);
    match differing {
        Some((at, (theirs, ours))) => Some(format!("line {at}: theirs {theirs:?}, ours {ours:?}")),
        None => (theirs != ours).then(|| "one text is longer".to_owned()),
    }
}

/// Runs a program on copies of the case's dumps, since dmd.py writes into its inputs.
fn answer(mut command: Command, case: &Case, scratch: &Path) -> io::Result<Output> {
    fs::create_dir_all(scratch)?;
    command
        .current_dir(scratch)
        .env("PYTHONUTF8", "1")
        .env_remove("BREAKPAD_SYMBOLS_PATH")
        .args(&case.options);
    for (at, dump) in case.dumps.iter().enumerate() {
        let name = format!("dump{at}.json{}", if case.zipped { ".gz" } else { "" });
        let before = if case.zipped { zip(dump)? } else { dump.clone().into_bytes() };
        fs::write(scratch.join(&name), before)?;
        command.arg(name);
    }
    command.output()
}

pub(crate) fn zip(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// Returns the text without its two heading lines.
fn below_heading(text: &[u8]) -> String {
    String::from_utf8_lossy(text).splitn(3, '\n').nth(2).unwrap_or_default().to_owned()
}

/// Returns the statistics of clamping.
fn results(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip_while(|line| *line != "Results:").take(5).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Case, Random};
    use crate::generate::dumps::Shape;

    #[test]
    fn a_difference_is_found_where_it_is() {
        let table = [
            ("a\nb\n", "a\nb\n", None),
            ("a\nb\n", "a\nc\n", Some("line 2: theirs \"b\", ours \"c\"")),
            ("a\n", "a\n\n", Some("one text is longer")),
        ];
        for (theirs, ours, expected) in table {
            assert_eq!(super::difference(theirs, ours).as_deref(), expected);
        }
    }

    #[test]
    fn a_seed_gives_one_case_and_seeds_give_all_kinds() {
        let case = |seed| Case::generate(&mut Random::new(seed));
        assert_eq!(case(7).dumps, case(7).dumps);
        let all: String = (1..100).flat_map(|seed| case(seed).dumps).collect();
        for part in [
            "\"live\"",
            "\"cumulative\"",
            "\"scan\"",
            "\"dark-matter\"",
            "\"reps\": []",
            "malloc",
            "\"contents\"",
        ] {
            assert!(all.contains(part), "{part}");
        }
        assert!(Shape::large().blocks > 100_000);
    }
}
