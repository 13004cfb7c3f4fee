//! Accuracy and time of measuring, beside other crates on the same data.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::figure::{self, Figure, lines, median};
use crate::build;
use crate::failure::Failure;

/// The structures: a name, a description, and the largest time relative to stylo's with DMD asleep.
const STRUCTURES: [(&str, &str, Option<f64>); 4] = [
    ("map", "HashMap<String, Vec<String>> of 100 k keys", Some(0.7)),
    ("tree", "a million boxed nodes with names", Some(0.9)),
    ("ordered", "BTreeMap<u64, Vec<u8>> of 500 k", Some(0.9)),
    ("owners", "500 k Arc, two for each value", None),
];

/// The largest time with DMD awake relative to asleep, and of collecting relative to stylo's.
const AWAKE: f64 = 1.5;

const OURS: &str = "ours";
/// A measurement by a reporter: with DMD awake, it also claims each block.
const COLLECTING: &str = "ours, collecting";
const PEER: &str = "stylo";

/// The measurement of one structure by one crate.
struct Answer {
    reported: f64,
    truth: f64,
    blocks: f64,
    /// One of each launch.
    times: Vec<f64>,
}

type Answers = HashMap<String, Answer>;

/// The options with which DMD tracks every block.
const TRACKED: &str = "--stacks=none";

/// The rounds of one launch, of which the median counts.
const ROUNDS: &str = "3";

/// Measures all structures. Where a process has its data in physical memory changes its times by up
/// to a third, for as long as it runs. So the program is launched again and again, in turn with DMD
/// asleep, awake, and started when half of a structure is built, and a ratio is of launches that
/// followed each other.
pub(crate) fn run(is_quick: bool, out: &mut dyn Write) -> Result<bool, Failure> {
    let program = build_peers()?;
    let (launches, scale) = if is_quick { (7, "10") } else { (15, "1") };
    let mut figures = Vec::new();
    for (structure, what, target) in STRUCTURES {
        let [mut asleep, mut awake, mut late] = [(); 3].map(|()| Answers::new());
        for launch in 0..launches {
            // The others are measured once, for the table.
            let only: &[&str] = if launch == 0 { &[] } else { &[OURS, COLLECTING, PEER] };
            let args = [structure, ROUNDS, scale];
            add(&mut asleep, measure(&program, args, only, ("DMD", ""))?);
            add(&mut awake, measure(&program, args, only, ("DMD", TRACKED))?);
            add(&mut late, measure(&program, args, &[COLLECTING], ("START_AT_HALF", TRACKED))?);
        }
        table(&format!("{structure}: {what}"), &asleep, &awake, out)?;
        figures.push(miss(&format!("{structure}: what is not reported, awake"), &awake)?);
        if let Some(target) = target {
            figures.push(ratio(
                &format!("{structure}: time, asleep, of stylo's"),
                (of(&asleep, OURS)?, of(&asleep, PEER)?),
                target,
            ));
            figures.push(ratio(
                &format!("{structure}: time, collecting, of stylo's"),
                (of(&awake, COLLECTING)?, of(&asleep, PEER)?),
                AWAKE,
            ));
        }
        figures.push(ratio(
            &format!("{structure}: time, awake, of asleep"),
            (of(&awake, OURS)?, of(&asleep, OURS)?),
            AWAKE,
        ));
        figures.push(ratio(
            &format!("{structure}: time, collecting, of asleep"),
            (of(&awake, COLLECTING)?, of(&asleep, OURS)?),
            AWAKE,
        ));
        figures.push(ratio(
            &format!("{structure}: time, collecting late, of asleep"),
            (of(&late, COLLECTING)?, of(&asleep, OURS)?),
            AWAKE,
        ));
    }
    figure::table(&format!("Measuring ({launches} interleaved launches)"), &figures, out)?;
    Ok(lines(&figures, out)?)
}

/// Builds the program that links the other crates, which the workspace does not depend on.
fn build_peers() -> Result<std::path::PathBuf, Failure> {
    let folder = build::root().join("xtask/peers-measure");
    let target = target_folder().join("peers-measure");
    let mut cargo = build::cargo();
    cargo.current_dir(&folder).args(["build", "--release", "--quiet", "--target-dir"]);
    if cargo.arg(&target).status()?.success() {
        Ok(target.join("release/peers-measure"))
    } else {
        Err("peers-measure could not be built; its dependencies come from crates.io".into())
    }
}

fn target_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| build::root().join("target"), Into::into)
}

fn measure(
    program: &Path,
    args: [&str; 3],
    only: &[&str],
    (name, options): (&str, &str),
) -> Result<Answers, Failure> {
    let mut command = Command::new(program);
    command.args(args).args(only).env_remove("DMD").env(name, options);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("peers-measure {} failed", args.join(" ")).into());
    }
    String::from_utf8(output.stdout)?.lines().map(read).collect()
}

fn read(line: &str) -> Result<(String, Answer), Failure> {
    let line: Value = serde_json::from_str(line)?;
    let number = |name: &str| line[name].as_f64().ok_or_else(|| format!("no {name} in {line}"));
    let times = line["ns"].as_array().into_iter().flatten().filter_map(Value::as_f64);
    let answer = Answer {
        reported: number("reported")?,
        truth: number("truth")?,
        blocks: number("blocks")?,
        times: vec![median(times.collect()).0],
    };
    Ok((line["peer"].as_str().unwrap_or_default().to_owned(), answer))
}

/// Adds the times of a launch to those of others.
fn add(answers: &mut Answers, launch: Answers) {
    for (peer, answer) in launch {
        match answers.entry(peer) {
            Entry::Occupied(mut known) => known.get_mut().times.extend(answer.times),
            Entry::Vacant(new) => {
                new.insert(answer);
            }
        }
    }
}

fn of<'a>(answers: &'a Answers, peer: &str) -> Result<&'a Answer, Failure> {
    answers.get(peer).ok_or_else(|| format!("{peer} did not answer").into())
}

/// Returns the error of our measurement, in percent of the truth.
fn miss(name: &str, answers: &Answers) -> Result<Figure, Failure> {
    let ours = of(answers, OURS)?;
    let value = 100.0 * (1.0 - ours.reported / ours.truth).abs();
    Ok(Figure::new(name, vec![value]).at_most(0.0, "%"))
}

/// Returns the ratio of two times, launch by launch.
fn ratio(name: &str, (one, other): (&Answer, &Answer), target: f64) -> Figure {
    let ratios = one.times.iter().zip(&other.times).map(|(one, other)| one / other).collect();
    Figure::new(name, ratios).at_most(target, "x")
}

/// Prints the measurement of each crate, the most accurate first.
fn table(title: &str, asleep: &Answers, awake: &Answers, out: &mut dyn Write) -> io::Result<()> {
    let percent = |answer: &Answer| 100.0 * answer.reported / answer.truth;
    let time = |answer: &Answer| median(answer.times.clone()).0 / answer.blocks;
    let others = asleep.iter().filter(|(peer, _)| *peer != COLLECTING);
    let mut rows: Vec<(String, &Answer)> =
        others.map(|(peer, answer)| (peer.clone(), answer)).collect();
    for peer in [OURS, COLLECTING] {
        rows.extend(awake.get(peer).map(|answer| (format!("{peer}, awake"), answer)));
    }
    rows.sort_by(|one, other| {
        (percent(one.1) - 100.0).abs().total_cmp(&(percent(other.1) - 100.0).abs())
    });
    writeln!(out, "{title}\n  {:<24} {:>10} {:>14}", "", "reported", "time a block")?;
    for (peer, answer) in rows {
        writeln!(out, "  {peer:<24} {:>8.2} % {:>11.1} ns", percent(answer), time(answer))?;
    }
    if !asleep.contains_key(PEER) {
        writeln!(out, "  {PEER:<24} not run: it does not know std's `Arc`")?;
    }
    writeln!(out)
}
