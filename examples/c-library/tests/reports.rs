//! The reports of the libraries, with their blocks tracked and without.

use std::collections::BTreeMap;
use std::process::Command;

use about_memory::{Cli, Context};
use clap::Parser;

const PROGRAM: &str = env!("CARGO_BIN_EXE_c-library");

/// Returns the kind and the amount of each report that the program has printed.
fn reports(text: &str) -> BTreeMap<String, (String, u64)> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let path = words.next()?.to_owned();
        Some((path, (words.next()?.to_owned(), words.next()?.parse().ok()?)))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn without_the_library_blocks_of_c_are_non_heap() {
    let output = Command::new(PROGRAM).env_remove("DMD").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = reports(&text);
    let (kind, bytes) = &found["explicit/images/decoded"];
    // Ten times 100,000 bytes and a structure of 16, as malloc rounds them up.
    assert_eq!((kind.as_str(), *bytes), ("NonHeap", 10 * (100_008 + 24)), "{text}");
    assert_eq!(found["explicit/images/texture"], ("NonHeap".to_owned(), 1 << 20));
    assert_eq!(found["images"], ("Other".to_owned(), 10));
    // 1,000 pointers, and for each name a string of 32 bytes and its 101 characters. malloc may
    // leave a block a few bytes larger.
    let (kind, bytes) = &found["explicit/names"];
    assert_eq!(kind, "NonHeap");
    assert!((152_008..152_200).contains(bytes), "{text}");
    // Rust's allocator has these; the header has 16 bytes.
    let (kind, bytes) = &found["explicit/images/index"];
    assert_eq!((kind.as_str(), *bytes), ("Heap", 50_024), "{text}");
    assert!(text.contains("note: explicit/images/count: refused"), "{text}");
    assert!(text.contains("reporters of C at the end: 0"), "{text}");
}

#[test]
fn with_the_library_each_block_is_claimed_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a place for files");
    let saved = folder.path().join("heap.json.gz");
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let kept = folder.path().join("kept");
    let words = ["about-memory", "run", "--c-heap", "-o"].map(Into::into).into_iter();
    let words: Vec<std::ffi::OsString> =
        words.chain([kept.into(), "--".into(), PROGRAM.into(), saved.clone().into()]).collect();
    let cli = Cli::try_parse_from(words).expect("a command");
    cli.run(&mut Context::new(&mut out, &mut notes)).expect("it runs");
    let (out, notes) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&notes));
    let mut shown = Vec::new();
    let words = [saved.to_str().expect("text"), "--verbose"];
    let cli = Cli::try_parse_from(["about-memory"].iter().chain(&words)).expect("a command");
    cli.run(&mut Context::new(&mut shown, &mut Vec::new())).expect("a report");
    let shown = String::from_utf8_lossy(&shown);
    let line = |bytes: &str, part: &str| {
        let is_there = shown.lines().any(|line| line.contains(bytes) && line.ends_with(part));
        assert!(is_there, "{bytes} {part}\n{shown}\n{out}\n{notes}");
    };
    line("1,000,320 B", "decoded");
    line("1,048,576 B", "texture");
    line("50,024 B", "index");
    line("152,0", "names");
    // What no reporter of C counts: the object with the names, and libstdc++'s pool.
    assert!(shown.contains("c-heap"), "{shown}");
    assert!(out.contains("Nothing is reported twice; no report is wrong."), "{out}");
}
