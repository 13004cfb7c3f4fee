//! Tests what no reporter reported, by owner, below the report of a snapshot with a scan.

use std::process::Command;

use about_memory::{Cli, Context};
use clap::Parser;

/// Returns what a command of `about-memory` prints.
fn shown(words: &[&str]) -> String {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let words = ["about-memory"].iter().chain(words);
    let cli = Cli::try_parse_from(words).expect("the words are right");
    cli.run(&mut Context::new(&mut out, &mut notes)).unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(out).expect("text")
}

/// Returns the number at the start of the line with this text.
fn number_before(text: &str, wanted: &str) -> u64 {
    let line = text.lines().find(|line| line.contains(wanted));
    let line = line.unwrap_or_else(|| panic!("no `{wanted}` in:\n{text}"));
    let digits = line.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let number: String =
        digits.chars().take_while(|letter| *letter != ' ').filter(char::is_ascii_digit).collect();
    number.parse().expect("a number")
}

#[test]
fn the_rows_below_a_report_add_up_to_heap_unclassified() {
    let folder = tempfile::tempdir().expect("a place for files");
    let text = folder.path().join("text");
    std::fs::create_dir(&text).expect("its own folder");
    // Words of many letters: what is planted are groups of three.
    let letter = |number: u32| char::from_u32(u32::from('a') + number % 26).expect("a letter");
    let word = |n: u32| ['w', letter(n), letter(n / 26), letter(n / 676), ' '];
    let words: String = (0..10_000).flat_map(word).collect();
    std::fs::write(text.join("a.txt"), words).expect("written");
    let report = folder.path().join("report.json.gz");
    let program = Command::new(env!("CARGO_BIN_EXE_fulltext"))
        .args(["--plant", "unreported", "--snapshot"])
        .args([&report, &text])
        .env("DMD", "--mode=scan")
        .output()
        .expect("cargo has built it");
    assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
    let report = report.to_str().expect("text");
    let unclassified = number_before(&shown(&["-v", report]), "heap-unclassified");
    let below = shown(&[report]);
    let (_, by_owner) = below.split_once("\nUnreported, by owner (").expect("it has a scan");
    assert_eq!(number_before(by_owner, ", which no reporter reported"), unclassified);
    let planted = number_before(by_owner, "static fulltext::faults::SIMILAR");
    assert!(planted * 10 > unclassified * 9, "{by_owner}");

    // The same as a command of its own, and whole without the option.
    let dump = dmd::dump::beside(report.as_ref());
    let dump = dump.to_str().expect("text");
    let rows: serde_json::Value =
        serde_json::from_str(&shown(&["tree", "--unreported", "--json", dump])).expect("JSON");
    assert_eq!(rows["bytes"], unclassified);
    let all: serde_json::Value =
        serde_json::from_str(&shown(&["tree", "--json", dump])).expect("JSON");
    assert!(all["bytes"].as_u64() > rows["bytes"].as_u64(), "{}", all["bytes"]);
}
