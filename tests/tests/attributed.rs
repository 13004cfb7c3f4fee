//! Tests blocks that no reporter measures and DMD attributes: by pointers, by crate, by scope.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use memreport_analysis::read;
use serde_json::Value;

/// A run of the subject: what was allocated by kind, and the report.
struct Run {
    allocated: BTreeMap<String, i64>,
    reported: BTreeMap<String, i64>,
    notes: Vec<String>,
}

fn run(report: &Path, dmd: Option<&str>) -> Run {
    let mut program = Command::new(env!("CARGO_BIN_EXE_attributed"));
    program.arg(report).env_remove("DMD");
    if let Some(variable) = dmd {
        program.env("DMD", variable);
    }
    let output = program.output().expect("cargo has built it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let allocated = text.lines().map(|line| {
        let (name, bytes) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), bytes.parse().expect("a number"))
    });
    let file: Value = serde_json::from_slice(&std::fs::read(report).expect("it was saved"))
        .expect("a report is JSON");
    let reports = file["reports"].as_array().expect("a list").iter().map(|report| {
        let path = report["path"].as_str().expect("a path").to_owned();
        (path, report["amount"].as_i64().expect("a number"))
    });
    let notes = file["memreport"]["notes"].as_array().expect("a list");
    let notes = notes.iter().map(|note| note.as_str().expect("text").to_owned()).collect();
    Run { allocated: allocated.collect(), reported: reports.collect(), notes }
}

impl Run {
    fn allocated(&self, kinds: &[&str]) -> i64 {
        kinds.iter().map(|kind| self.allocated[*kind]).sum()
    }

    fn noted(&self, words: &[&str]) -> bool {
        self.notes.iter().any(|note| words.iter().all(|word| note.contains(word)))
    }
}

#[test]
fn attributed_bytes_are_those_of_the_allocator_and_count_as_reported() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("report.json");
    for mode in ["--mode=dark-matter", "--mode=scan"] {
        let run = run(&path, Some(mode));
        for (path, kinds) in [
            ("explicit/shelf/other", &["titles", "cover"][..]),
            ("explicit/shelf/inferred/Shelf.packed", &["packed"]),
            ("explicit/shelf/inferred/Shelf.visitor", &["visitor"]),
            ("explicit/lib/json", &["json"]),
            ("explicit/lib/nothing", &[]),
            ("explicit/requests", &["requests"]),
        ] {
            let reported = run.reported.get(path).unwrap_or_else(|| panic!("{mode}: no {path}"));
            assert_eq!(*reported, run.allocated(kinds), "{mode}: {path}");
        }
        assert!(!run.reported.contains_key("explicit/shelf"), "a path is a node or a report");
        assert!(run.noted(&["explicit/lib/nothing", "no_such_crate"]), "{:?}", run.notes);
        assert!(!run.noted(&["lack blocks"]), "{:?}", run.notes);

        // Each of these blocks is reported once in the dump, and under the same path.
        let dump = dmd::dump::beside(&path);
        let dump = read::read_slice(&std::fs::read(dump).expect("saved")).expect("a dump");
        let mut once = BTreeMap::<String, i64>::new();
        for block in &dump.blocks {
            let reports = dump.reports(&block).unwrap_or(&[]);
            assert!(reports.len() <= 1, "nothing is reported twice");
            let Some(trace) = reports.first() else { continue };
            let frame = dump.trace(*trace).last().expect("a path");
            let text = &dump.frames[frame.index()].text;
            let path = text.split_once(": ").map_or(&**text, |(_, path)| path);
            let bytes = i64::try_from(block.usable() * block.num).expect("fits");
            *once.entry(path.to_owned()).or_default() += bytes;
        }
        for path in
            ["explicit/shelf/inferred/Shelf.packed", "explicit/lib/json", "explicit/requests"]
        {
            assert_eq!(once.get(path), run.reported.get(path), "{mode}: {path} in {once:?}");
        }
    }
}

#[test]
fn what_dmd_would_attribute_is_noted_without_it() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("report.json");
    let run = run(&path, None);
    assert_eq!(run.reported["explicit/shelf"], run.allocated(&["titles", "cover"]));
    for path in ["explicit/lib/json", "explicit/requests", "explicit/shelf/inferred/Shelf.packed"] {
        assert!(!run.reported.contains_key(path), "{path}");
    }
    assert!(run.noted(&["explicit/shelf: 2 values are", "DMD"]), "{:?}", run.notes);
    assert!(
        run.noted(&["explicit/lib/json, explicit/lib/nothing, explicit/requests are missing"]),
        "{:?}",
        run.notes
    );
}

#[test]
fn without_whole_stacks_crates_lack_blocks_and_a_note_says_so() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("report.json");
    let without = run(&path, Some("--mode=dark-matter --stacks=none"));
    assert_eq!(without.reported["explicit/lib/json"], 0);
    assert_eq!(without.reported["explicit/requests"], without.allocated(&["requests"]));
    assert!(
        without.noted(&["no stacks", "explicit/lib/json", "--stacks=full"]),
        "{:?}",
        without.notes
    );
    let profile = run(&path, Some("--mode=profile"));
    assert!(!profile.reported.contains_key("explicit/lib/json"));
    for words in ["explicit/lib/json", "reachable"] {
        assert!(profile.noted(&["a profile has a sample", words]), "{:?}", profile.notes);
    }
}
