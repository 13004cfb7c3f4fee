//! Tests the figures of a program whose tracking starts late: they add up to the whole heap.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use about_memory::{Cli, Context};
use clap::Parser as _;
use memreport_analysis::read::{Dump, Sum};
use serde_json::Value;

/// The words for blocks that the tracker does not list.
const UNTRACKED: &str = "from before tracking began or while it was off";

/// The files of a run.
struct Run {
    folder: PathBuf,
    /// The bytes of `heap-unclassified` in the report.
    unclassified: i64,
    /// The bytes of the reported slices.
    slices: i64,
    dump: Dump,
}

impl Run {
    fn new(options: &str) -> Self {
        // Tests of one process run at the same time, also with the same options.
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let (process, run) = (std::process::id(), RUNS.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(format!("late-start-{process}-{run}"));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let report = folder.join("heap.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_late-start"));
        let output = command.arg(options).arg(&report).env_remove("DMD").output();
        let output = output.expect("the subject starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<i64> =
            output.split_whitespace().map(|number| number.parse().expect("bytes")).collect();
        let [unclassified, slices] = numbers[..] else { panic!("two numbers: {output}") };
        let dump = memreport_analysis::read::read_file(&dmd::dump::beside(&report));
        Run { folder, unclassified, slices, dump: dump.expect("the dump is there, and good") }
    }

    /// Returns the output of `about-memory WORDS DUMP`.
    fn shown(&self, words: &str) -> String {
        let dump = dmd::dump::beside(&self.folder.join("heap.json"));
        let words = ["about-memory"].into_iter().chain(words.split_whitespace());
        let words = words.map(str::to_owned).chain([dump.display().to_string()]);
        let cli = Cli::try_parse_from(words).expect("right words");
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        cli.run(&mut Context::new(&mut out, &mut notes)).expect("a dump");
        String::from_utf8(out).expect("text")
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.shown(words)).expect("JSON")
    }

    fn heap_allocated(&self) -> i64 {
        let ours = self.dump.extension.as_ref().expect("it is ours");
        i64::try_from(ours.heap_allocated.expect("counted")).expect("small")
    }

    fn untracked(&self) -> Sum {
        self.dump.extension.as_ref().expect("it is ours").untracked
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns a number with commas, as texts contain it.
fn commas(number: i64) -> String {
    memreport_analysis::analysis::commas(number.into())
}

#[test]
fn the_heap_tree_is_of_all_blocks() {
    for options in ["--mode=live", "--mode=dark-matter", "--mode=cumulative"] {
        let run = Run::new(options);
        let text = run.shown("heap tree");
        let untracked = i64::try_from(run.untracked().bytes).expect("small");
        assert!(untracked > 1_000_000, "{untracked}");
        assert!(text.contains(", 100.00% of the heap"), "{text}");
        let line = text.lines().last().unwrap_or_default();
        assert!(line.contains(UNTRACKED) && line.contains(&commas(untracked)), "{text}");
        let tree = run.json("heap tree --json");
        let kids = tree["kids"].as_array().expect("kids");
        let sum: i64 = kids.iter().filter_map(|kid| kid["bytes"].as_i64()).sum();
        assert_eq!(Some(sum), tree["bytes"].as_i64(), "{options}");
        if options != "--mode=cumulative" {
            let all = run.heap_allocated();
            assert_eq!(sum, all, "{options}");
            let first = text.lines().next().unwrap_or_default();
            assert!(first.contains(&commas(all)), "{text}");
            assert!(text.contains(&format!("= {:>15}  heap-allocated", commas(all))), "{text}");
            let share = format!("{:.2}%", 100.0 * untracked as f64 / all as f64);
            assert!(line.contains(&share), "{text}");
        }
    }
}

#[test]
fn slices_count_by_their_lengths_where_no_block_is_known() {
    // The list is from before too, but the allocator tells its size. Blocks of 400 bytes have 408.
    let list = 200 * size_of::<bytes::Bytes>() + 8;
    let expected = i64::try_from(list + 100 * 300 + 50 * 408).expect("small");
    // A profile that samples each block has them in another table.
    for options in ["--mode=dark-matter", "--mode=profile --sample-bytes=1"] {
        assert_eq!(Run::new(options).slices, expected, "{options}");
    }
}

#[test]
fn a_profile_estimates_the_blocks_from_before() {
    let run = Run::new("--mode=profile --sample-bytes=1K");
    let untracked = i64::try_from(run.untracked().bytes).expect("small");
    // A thousand of 1,000 bytes, 200 of 700, 100 of 300, and the program's own; the estimate of the
    // others, some 2,500,000 bytes, is off by 2 % at most.
    assert!((1_050_000..1_350_000).contains(&untracked), "{untracked}");
    let text = run.shown("heap tree");
    let line = text.lines().last().unwrap_or_default();
    assert!(line.contains(UNTRACKED) && line.contains(&commas(untracked)), "{text}");
    let account = text.lines().find(|line| line.starts_with('+') && line.contains(UNTRACKED));
    assert!(account.is_some_and(|line| line.contains(&commas(untracked))), "{text}");
    let all = commas(run.heap_allocated());
    assert!(text.contains(&format!("= {all:>15}  heap-allocated")), "{text}");
    let summary = run.shown("heap records --explain");
    assert!(summary.contains("from before tracking began"), "{summary}");
}

#[test]
fn coverage_adds_up_to_the_whole_heap() {
    let run = Run::new("--mode=dark-matter");
    let (all, untracked) = (run.heap_allocated(), run.untracked().bytes);
    let json = run.json("heap coverage --json");
    let bytes = |name: &str| json[name]["bytes"].as_i64().expect("bytes");
    assert_eq!(bytes("heap"), all);
    let parts = ["once", "dark", "twice", "untracked"].map(bytes);
    assert_eq!(parts.iter().sum::<i64>(), all, "{parts:?}");
    let score = 100.0 * json["exactlyOnceBytes"].as_f64().expect("a number") / all as f64;
    assert!((json["score"].as_f64().expect("a number") - score).abs() < 0.001);
    let text = run.shown("heap coverage");
    let equation = format!(
        "heap-allocated {} = once {} + unreported {} + twice or more {} + untracked {}",
        commas(all),
        commas(bytes("once")),
        commas(bytes("dark")),
        commas(bytes("twice")),
        commas(bytes("untracked"))
    );
    assert!(text.contains(&equation), "{text}");
    assert_eq!(text.matches(UNTRACKED).count(), 4, "a sentence, and a row of each table: {text}");
    assert_eq!(untracked, u64::try_from(bytes("untracked")).expect("positive"));
}

#[test]
fn records_census_and_exports_have_a_line_of_their_own() {
    let run = Run::new("--mode=dark-matter");
    let all = run.heap_allocated();
    let untracked = i64::try_from(run.untracked().bytes).expect("small");
    let census = run.shown("heap census");
    assert!(census.lines().next().unwrap_or_default().contains(&commas(all)), "{census}");
    let line = census.lines().find(|line| line.contains("untracked"));
    assert!(line.is_some_and(|line| line.contains(&commas(untracked))), "{census}");
    let json = run.json("heap census --json");
    assert_eq!(json["untracked"]["bytes"], untracked);
    let csv = run.shown("heap census --csv");
    let bytes = |line: &str| line.split(',').rev().nth(2)?.parse::<i64>().ok();
    assert_eq!(csv.lines().filter_map(bytes).sum::<i64>(), all, "{csv}");
    let explained = run.json("heap records --json");
    assert_eq!(explained["heap"]["bytes"], all);
    assert_eq!(explained["untracked"]["bytes"], untracked);
    assert_eq!(explained["heapUnclassified"], run.unclassified);
    let groups = run.shown("heap records --by size --top 100");
    assert!(groups.contains(UNTRACKED), "{groups}");
    let folded = run.shown("export --to folded");
    let amount = |line: &str| line.rsplit(' ').next()?.parse::<i64>().ok();
    assert_eq!(folded.lines().filter_map(amount).sum::<i64>(), all);
    assert!(folded.contains(UNTRACKED), "{folded}");
}

#[test]
fn dominators_have_the_whole_heap_for_their_shares() {
    let run = Run::new("--mode=scan");
    let text = run.shown("heap dominators");
    let all = run.heap_allocated();
    let untracked = i64::try_from(run.untracked().bytes).expect("small");
    assert!(text.lines().next().unwrap_or_default().contains(&commas(all)), "{text}");
    let line = text.lines().find(|line| line.contains(UNTRACKED)).unwrap_or_default();
    let share = format!("{:.2}%", 100.0 * untracked as f64 / all as f64);
    assert!(line.contains(&commas(untracked)) && line.contains(&share), "{text}");
}
