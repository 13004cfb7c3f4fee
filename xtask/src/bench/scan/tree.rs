//! `cargo xtask bench tree [BLOCKS]`: time, memory and pause for the tree of a heap of many small
//! blocks: 50 million by default, which take 5 GB.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::bench::figure::{Figure, lines, table};
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

const BLOCKS: u64 = 50_000_000;

/// The largest peak of a command, as a share of the dump that it reads.
const LARGEST_SHARE: f64 = 0.25;

/// Runs the benchmark. Returns `false` if the tree lacks a byte of the static.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let blocks = match args {
        [] => BLOCKS,
        [word] => word.parse().map_err(|_| format!("{word} is no number of blocks"))?,
        _ => return Err("`tree` takes a number of blocks".into()),
    };
    let program = build::release("memreport-tests", "lists")?;
    let about_memory = build::release("about-memory", "about-memory")?;
    let scratch = Scratch::new()?;
    let (report, dump) = (scratch.0.join("lists.json"), scratch.0.join("lists.dmd.json"));
    let mut run = Command::new(program);
    run.arg(blocks.to_string()).arg(&report).env("DMD", "--mode=scan");
    let (text, run) = Measured::of(&run, &scratch.0)?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [snapshot, saved, usual, longest, _] = numbers[..] else {
        return Err(format!("the program printed {text}").into());
    };
    let ask = |question: &[&str]| {
        let mut show = Command::new(&about_memory);
        Measured::of(show.args(question).arg(&dump), &scratch.0)
    };
    let (tree, tree_cost) = ask(&["tree", "--json"])?;
    let (_, heap_tree) = ask(&["heap", "tree"])?;
    // Its text has the address of each block.
    let text = scratch.0.join("records.txt");
    let (_, records) = ask(&["heap", "records", "--output", &text.to_string_lossy()])?;
    let (_, dominators) = ask(&["heap", "dominators", "--depth", "2"])?;
    let tree: Value = serde_json::from_str(&tree)?;
    let of = |value: &Value, key: &str| value[key].as_u64().unwrap_or(0);
    let rows = tree["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let is_static = |row: &&Value| row["name"].as_str().is_some_and(|name| name.ends_with("LISTS"));
    let below = rows.iter().find(is_static).map_or(0, |row| of(row, "bytes"));
    // Each entry and name, and the list of lists.
    let planted = blocks / 2 * 208 + 8008;
    writeln!(
        out,
        "{} bytes in {} blocks, {below} below the static of {planted}\n",
        of(&tree, "bytes"),
        of(&tree, "blocks")
    )?;
    let dump_bytes = fs::metadata(&dump)?.len() as f64;
    let numbers = [
        ("snapshot", snapshot, "s"),
        ("save", saved, "s"),
        ("longest wait of a thread, before", usual / 1000.0, "ms"),
        ("longest wait of a thread, meanwhile", longest / 1000.0, "ms"),
        ("peak of the program", gigabytes(run.peak), "GiB"),
        ("dump", dump_bytes / 1e9, "GB"),
    ];
    let questions = [
        ("heap tree", &heap_tree),
        ("heap records", &records),
        ("heap dominators", &dominators),
        ("tree", &tree_cost),
    ];
    let of_program = numbers
        .into_iter()
        .map(|(name, value, unit)| Figure::new(name, vec![value]).at_most(None, unit));
    let of_questions =
        questions.into_iter().flat_map(|(name, cost)| cost.figures(name, dump_bytes));
    let figures: Vec<Figure> = of_program.chain(of_questions).collect();
    table(&format!("a heap of {blocks} blocks"), &figures, out)?;
    Ok(lines(&figures, out)? && below == planted)
}

fn gigabytes(kib: f64) -> f64 {
    kib / 1024.0 / 1024.0
}

/// The cost of a process.
struct Measured {
    seconds: f64,
    /// Its peak of resident memory, in KiB.
    peak: f64,
}

impl Measured {
    /// Returns the figures of a question about a dump of so many bytes.
    fn figures(&self, question: &str, dump_bytes: f64) -> [Figure; 3] {
        let share = self.peak * 1024.0 / dump_bytes;
        [
            Figure::new(question, vec![self.seconds]).at_most(None, "s"),
            Figure::new(format!("peak of {question}"), vec![gigabytes(self.peak)])
                .at_most(None, "GiB"),
            Figure::new(format!("peak of {question}, of the dump"), vec![share])
                .at_most(LARGEST_SHARE, "x"),
        ]
    }

    /// Runs a command to its end, and returns its output too. GNU's `time` knows its peak.
    fn of(command: &Command, folder: &Path) -> Result<(String, Self), Failure> {
        let file = folder.join("peak");
        let mut timed = Command::new("/usr/bin/time");
        timed.args(["-f", "%M", "-o"]).arg(&file).arg(command.get_program());
        timed.args(command.get_args());
        timed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let begun = Instant::now();
        let output = timed.output().map_err(|error| format!("/usr/bin/time: {error}"))?;
        let seconds = begun.elapsed().as_secs_f64();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let peak = fs::read_to_string(file)?.trim().parse()?;
        Ok((String::from_utf8(output.stdout)?, Self { seconds, peak }))
    }
}
