//! Tests that every command that reads dumps refuses other input with exit status 2 and a remedy.

use std::fs;
use std::io::Write;
use std::process::Output;

use super::folder::Folder;

const FRAMES: &str = r##""traceTable":{"A":["B"]},"frameTable":{"B":"#00: main (main.rs:1)"}"##;

fn dump(mode: &str, blocks: &str) -> String {
    format!(
        r#"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"{mode}"}},"blockList":[{blocks}],{FRAMES}}}"#
    )
}

/// Runs the program beside a dump `d.json` of this content.
fn run(folder: &Folder, content: &[u8], args: &[&str]) -> Output {
    folder.write("d.json", content);
    folder.run(args)
}

fn refusal(folder: &Folder, content: &[u8], args: &[&str]) -> String {
    let output = run(folder, content, args);
    assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()), "{args:?}");
    String::from_utf8(output.stderr).unwrap().trim_end().to_owned()
}

#[test]
fn every_command_refuses_what_is_no_dump_in_the_same_words() {
    let folder = Folder::new();
    let whole = dump("dark-matter", r#"{"req":8,"alloc":"A"}"#);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(whole.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let version = whole.replace("\"version\":5", "\"version\":6");
    let table: [(&[u8], &str); 6] = [
        (b"", "about-memory: d.json: the dump is empty; was it read while it was being written?"),
        (
            &whole.as_bytes()[..whole.len() / 2],
            "about-memory: d.json: dump that ends in the middle, at line 1: the program stopped while writing it, or the \
             copy is cut",
        ),
        (&gzip[..gzip.len() / 2], "about-memory: d.json: damaged gzip data ("),
        (version.as_bytes(), "about-memory: d.json: DMD dump of version 6; only 5 is known"),
        (b"[]", "about-memory: d.json: not a DMD dump: "),
        (b"{\"version\":5}", "about-memory: d.json: not a DMD dump: it has no `"),
    ];
    let commands: [&[&str]; 10] = [
        &["dmd", "d.json"],
        &["dmd", "--explain", "d.json"],
        &["dmd", "--referrers", "10", "d.json"],
        &["coverage", "d.json"],
        &["symbolicate", "d.json", "-o", "out.json"],
        &["export", "d.json", "--to", "dhat", "-o", "out.json"],
        &["heap", "d.json"],
        &["heap-diff", "d.json", "d.json"],
        &["retained", "d.json"],
        &["held", "d.json", "--block", "10"],
    ];
    for (content, expected) in table {
        for command in commands {
            let said = refusal(&folder, content, command);
            assert!(said.starts_with(expected), "{command:?}: {said}");
        }
    }
    assert!(!folder.path("out.json").exists(), "nothing is written of what is refused");
}

#[test]
fn flags_that_would_change_nothing_are_refused() {
    let folder = Folder::new();
    let whole = dump("dark-matter", r#"{"req":8,"alloc":"A"}"#);
    let table: [&[&str]; 7] = [
        &["--explain", "--sort-by", "req"],
        &["--explain", "--filter", "main"],
        &["--json", "--ignore-alloc-fns"],
        &["--by", "type", "--filter", "main"],
        &["--referrers", "10", "--sort-by", "req"],
        &["--top", "3"],
        &["--print-clamp-stats"],
    ];
    for more in table {
        let said =
            refusal(&folder, whole.as_bytes(), &[&["heap", "records", "d.json"], more].concat());
        assert!(said.starts_with("error: the "), "{more:?}: {said}");
    }
    let output = run(&folder, whole.as_bytes(), &["heap", "records", "d.json", "--filter", "main"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn records_of_a_sample_are_not_those_of_the_heap() {
    let folder = Folder::new();
    let own =
        r#""memreport":{"version":1,"mode":"profile","sampled":{"sampleBytes":1024}},"blockList""#;
    let text = dump("live", r#"{"req":8,"alloc":"A"}"#);
    for (content, is_noted) in [(text.replace(r#""blockList""#, own), true), (text, false)] {
        let output = run(&folder, content.as_bytes(), &["heap", "records", "d.json"]);
        assert_eq!(output.status.code(), Some(0));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            said.contains("d.json: its blocks are a sample of the heap"),
            is_noted,
            "{said}"
        );
    }
}

#[test]
fn a_question_that_a_dump_cannot_answer_says_which_dump_can() {
    let folder = Folder::new();
    let table: [(&str, &[&str], &str); 9] = [
        (
            "live",
            &["coverage", "d.json"],
            "d.json: a dump of this mode does not say who reports what: take one with DMD=1",
        ),
        (
            "live",
            &["dmd", "--referrers", "10", "d.json"],
            "d.json: contents are only in scan dumps: take one with DMD=--mode=scan",
        ),
        (
            "live",
            &["retained", "d.json"],
            "d.json: contents are only in scan dumps: take one with DMD=--mode=scan",
        ),
        (
            "dark-matter",
            &["held", "d.json", "--type", "String"],
            "d.json: contents are only in scan dumps: take one with DMD=--mode=scan",
        ),
        (
            "scan",
            &["held", "d.json", "--type", "String"],
            "d.json: no block is of the type `String`: `heap records --by type` lists types, and --type-contains takes a part of a name",
        ),
        (
            "scan",
            &["held", "d.json", "--type-contains", "String"],
            "d.json: no block is of a type with `String` in its name: `heap records --by type` lists them",
        ),
        ("scan", &["held", "d.json"], "error: the following required arguments were not provided:"),
        (
            "scan",
            &["dmd", "--referrers", "0x99", "d.json"],
            "d.json: no block holds 0x99: name an address of this dump, in hexadecimal, as `addr` or `block addresses` has it",
        ),
        (
            "scan",
            &["dmd", "--referrers", "zebra", "d.json"],
            "error: invalid value 'zebra' for '--referrers <ADDRESS>': not a hexadecimal address: invalid digit found in string",
        ),
    ];
    for (mode, args, expected) in table {
        let said = refusal(&folder, dump(mode, r#"{"req":8,"addr":"10"}"#).as_bytes(), args);
        assert!(said.trim_start_matches("about-memory: ").starts_with(expected), "{said}");
    }
}

#[test]
fn what_a_dump_lacks_is_said_and_the_rest_is_answered() {
    let folder = Folder::new();
    let blocks = r#"{"req":8,"alloc":"Q","heldBy":"gone"},{"req":16,"alloc":"A"}"#;
    let text = dump("dark-matter", blocks).replace(r#"["B"]"#, r#"["B","Z"]"#);
    for command in ["dmd", "coverage"] {
        let output = run(&folder, text.as_bytes(), &[command, "d.json"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("1 stack named but not in traceTable (the first is Q)"), "{said}");
        assert!(said.contains("1 frame named but not in frameTable (the first is Z)"), "{said}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("24"), "{command}");
    }
    let output = run(&folder, text.as_bytes(), &["symbolicate", "d.json", "-o", "out.json"]);
    assert_eq!(output.status.code(), Some(0));
    let written = fs::read(folder.path("out.json")).unwrap();
    let output = run(&folder, &written, &["dmd", "d.json"]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("16 bytes"));
}

#[test]
fn a_self_contained_dump_is_read_as_the_one_it_was_made_of() {
    let folder = Folder::new();
    let text = dump("dark-matter", r#"{"req":8,"alloc":"A"},{"req":16,"reps":["A"],"alloc":"A"}"#);
    let output = run(&folder, text.as_bytes(), &["symbolicate", "d.json", "-o", "out.json.gz"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let below_heading = |output: Output| {
        String::from_utf8(output.stdout).unwrap().split_once("\n\n").unwrap().1.to_owned()
    };
    let before = below_heading(run(&folder, text.as_bytes(), &["dmd", "d.json"]));
    let after = below_heading(run(&folder, text.as_bytes(), &["dmd", "out.json.gz"]));
    assert_eq!(after, before);
}

#[test]
fn a_scan_that_ends_too_early_leaves_an_older_output_alone() {
    let folder = Folder::new();
    let scan = dump("scan", r#"{"req":0,"alloc":"A"}"#).replacen(
        r#""blockList""#,
        r#""memreport":{"version":1,"needs":["scannedBlocks"],"scannedBlocks":2},"blockList""#,
        1,
    );
    // One of two blocks, with its address, its requested bytes, its slop and its kind.
    let cut = [scan.as_bytes(), &[0, 0x80, 0x20, 20, 4, 0]].concat();
    for name in ["out.json", "out.json.gz"] {
        folder.write(name, b"older");
        let said = refusal(&folder, &cut, &["symbolicate", "d.json", "-o", name]);
        assert!(said.contains("1 of 2 blocks"), "{said}");
        assert_eq!(fs::read(folder.path(name)).unwrap(), b"older");
    }
    let names = fs::read_dir(folder.path(".")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.starts_with("incomplete")));
    let whole = [&cut[..], &[0x20, 8, 0, 0]].concat();
    let output = run(&folder, &whole, &["symbolicate", "d.json", "-o", "out.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_to_string(folder.path("out.json")).unwrap().contains(r#""addr":"1020""#));
}

#[test]
fn fields_of_any_name_are_kept_in_the_blocks_of_a_scan() {
    let folder = Folder::new();
    let scan = dump("scan", r#"{"req":0,"alloc":"A","a\"b\n":1}"#).replacen(
        r#""blockList""#,
        r#""memreport":{"version":1,"needs":["scannedBlocks"],"scannedBlocks":1},"blockList""#,
        1,
    );
    let whole = [scan.as_bytes(), &[0, 0x80, 0x20, 20, 4, 0]].concat();
    let output = run(&folder, &whole, &["symbolicate", "d.json", "-o", "out.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let written = fs::read_to_string(folder.path("out.json")).unwrap();
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["blockList"][0]["a\"b\n"], 1);
}
