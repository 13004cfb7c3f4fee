//! Tests which files a command takes, and how it reads its flags.

use about_memory::{Cli, Context};
use clap::Parser as _;

use super::folder::Folder;

const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"live"},
    "blockList":[{"req":100,"alloc":"A"},{"req":40,"alloc":"B"}],
    "traceTable":{"A":["v","m"],"B":["w","m"]},
    "frameTable":{"v":"#00: <alloc::vec::Vec<u8>>::with_capacity (/rustc/1/library/alloc/src/vec/mod.rs:500)",
      "w":"#00: <alloc::vec::Vec<u16>>::with_capacity (/rustc/1/library/alloc/src/vec/mod.rs:500)",
      "m":"#00: subject::main (/s/src/main.rs:3)"}}"##;

fn report(pid: u32, start_ms: u64, bytes: u64) -> String {
    format!(
        r#"{{"version":1,"hasMozMallocUsableSize":true,"memreport":{{"version":1,
        "process":{{"name":"p","pid":{pid},"startMs":{start_ms}}}}},
        "reports":[{{"process":"","path":"explicit/cache","kind":1,"units":0,"amount":{bytes},"description":"D."}}]}}"#
    )
}

/// Runs a command. Returns its answer, or the error.
fn run(words: &[&str]) -> Result<String, String> {
    run_with_notes(words).map(|(answer, _)| answer)
}

/// Runs a command. Returns its answer and its notes, or the error.
fn run_with_notes(words: &[&str]) -> Result<(String, String), String> {
    let cli =
        Cli::try_parse_from([&["about-memory"], words].concat()).map_err(|e| e.to_string())?;
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    cli.run(&mut Context::new(&mut out, &mut notes)).map_err(|error| error.with_causes())?;
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ok((text(out), text(notes)))
}

#[test]
fn two_snapshots_of_one_process_are_compared() {
    let folder = Folder::new();
    let first = folder.write("a.json", report(7, 1_000_000, 8 << 20));
    let second = folder.write("b.json", report(7, 1_000_030, 9 << 20));
    let compared = run(&[&first, &second]).expect("two reports");
    assert_eq!(compared, run(&["diff", &first, &second]).expect("two reports"));
    assert!(compared.contains("1.00 MB"), "{compared}");
    // A later process with the same number, or another process, is shown beside the first.
    for other in [report(7, 9_000_000, 9 << 20), report(8, 1_000_000, 9 << 20)] {
        let other = folder.write("c.json", &other);
        let shown = run(&[&first, &other]).expect("two reports");
        assert!(shown.contains("8.00 MB") && shown.contains("9.00 MB"), "{shown}");
    }
}

#[test]
fn a_file_of_another_kind_is_named_with_its_command() {
    let folder = Folder::new();
    let dump = folder.write("heap.dmd.json", DUMP);
    let report = folder.write("heap.json", report(7, 1, 1 << 20));
    for words in [["diff", &dump, &report].as_slice(), &[&dump, "--filter", "a"]] {
        let message = run(words).expect_err("no report");
        let expected = format!(
            "{dump}: this is a dump of the heap; show it by `about-memory heap tree {dump}`"
        );
        assert_eq!(message, expected, "{words:?}");
    }
    for command in ["tree", "coverage", "census", "records"] {
        let message = run(&["heap", command, &report]).expect_err("no dump");
        let expected =
            format!("{report}: this is a memory report; show it by `about-memory show {report}`");
        assert_eq!(message, expected, "{command}");
    }
}

#[test]
fn a_dump_in_place_of_a_report_is_shown_as_what_it_is() {
    let folder = Folder::new();
    let dump = folder.write("heap.dmd.json", DUMP);
    for flags in [&[][..], &["--json"]] {
        let shown = run(&[&[&*dump], flags].concat()).expect("a dump");
        assert!(shown.contains("140"), "{shown}");
        assert_eq!(shown, run(&[&["heap", "tree", &*dump], flags].concat()).expect("a dump"));
    }
}

#[test]
#[cfg(unix)]
fn a_report_is_read_from_a_pipe() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(report(7, 1, 8 << 20).as_bytes()).expect("there is room");
    drop(writer);
    let shown = run(&[&format!("/proc/self/fd/{}", reader.as_raw_fd())]).expect("a report");
    assert!(shown.contains("8.00 MB"), "{shown}");
}

#[test]
fn an_invalid_regular_expression_is_an_error() {
    let folder = Folder::new();
    let report = folder.write("heap.json", report(7, 1, 1 << 20));
    let message = run(&[&report, "--filter", "(", "--regex"]).expect_err("invalid");
    assert!(message.starts_with("`(` is no regular expression: "), "{message}");
    assert!(run(&[&report, "--filter", "cac.e", "--regex"]).is_ok());
}

#[test]
fn a_type_is_matched_exactly() {
    let folder = Folder::new();
    let dump = folder.write("heap.dmd.json", DUMP);
    let shown = |words: &[&str]| run(&[&["heap", "tree", &dump], words].concat()).expect("a dump");
    assert!(shown(&["--type", "[unknown]"]).contains(": 140 live bytes"));
    assert!(shown(&["--type", "unknown"]).contains(": 0 live bytes"));
    assert!(shown(&["--type-contains", "unknown"]).contains(": 140 live bytes"));
    let notes = |name| run_with_notes(&["heap", "tree", &dump, "--type", name]).expect("a dump").1;
    let found = "note: no block has the type `unknown`; `--type-contains` finds `[unknown]`\n";
    assert!(notes("unknown").contains(found));
    assert!(notes("Vec").contains("note: no block has the type `Vec`\n"));
    assert!(!notes("[unknown]").contains("no block"));
}
