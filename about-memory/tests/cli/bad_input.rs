//! Tests that input which is no memory report, or too large, is refused with exit status 2 and a
//! remedy.

use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::folder::Folder;

const GOOD: &str = r#"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5, "description": "."}]}"#;

/// Returns the message for a file with this content.
fn said_of(folder: &Folder, content: impl AsRef<[u8]>) -> String {
    folder.write("f.json", content);
    said(&folder.run(&["f.json"]))
}

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr.clone()).unwrap().trim_end().to_owned()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(content).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let folder = Folder::new();
    for (content, words) in [
        ("", "the file is empty; was it read while it was being written?"),
        (
            "[1, 2]",
            "JSON, but no memory report: an object with `version` and `reports` is expected",
        ),
        (
            "{\"a\": 1}",
            "JSON, but no memory report: it has no `version`; is it a file of another tool?",
        ),
        ("{\"version\": 2}", "memory report of version 2; only 1 is known"),
        (
            "{\"version\": \"1\"}",
            "the version of the memory report is the string \"1\"; only the number 1 is known",
        ),
        (
            "{\"version\": 1}",
            "no memory report: `hasMozMallocUsableSize` is missing; write true or false",
        ),
        (
            "{\"version\": 1, \"hasMozMallocUsableSize\": true}",
            "no memory report: `reports` is missing or is no array",
        ),
        ("hello", "not JSON at byte 0: a value expected, not `h`"),
        ("{\"version\": 1,}", "not JSON at byte 14: a comma before the end"),
        ("{\"version\": 01}", "not JSON at byte 14: no number: `01`"),
        ("{\"version\": 1", "not JSON at byte 13: the text ends here, in the middle"),
        ("\u{feff}{} x", "not JSON at byte 6: the text should end here, but `x` follows"),
        ("{\"a\": \"\n\"}", "not JSON at byte 8: a line break may not stand in a string as it is"),
    ] {
        assert_eq!(said_of(&folder, content), format!("about-memory: f.json: {words}"));
    }
    assert_eq!(
        said_of(&folder, b"\xff\xfe{\0}\0"),
        "about-memory: f.json: text in UTF-16; convert it to UTF-8"
    );
}

#[test]
fn the_report_at_fault_is_named() {
    let folder = Folder::new();
    let second = |report: &str| GOOD.replace("}]}", &format!("}}, {report}]}}"));
    for (report, words) in [
        ("5", "report 1 is no object"),
        ("{\"amount\": 5}", "report 1 has no path"),
        ("{\"path\": 5}", "the path of report 1 is 5; it must be a string"),
        (
            "{\"path\": \"explicit/a\", \"kind\": 2}",
            "report 1 (`explicit/a`): its kind is 2; below `explicit` it must be 1 (HEAP) or 0 (NONHEAP)",
        ),
        (
            "{\"path\": \"explicit/a\", \"kind\": 1, \"units\": 1}",
            "report 1 (`explicit/a`): its units are 1; below `explicit` they must be 0 (bytes)",
        ),
        (
            "{\"path\": \"a\", \"process\": \"constructor\"}",
            "report 1 (`a`): its process is called `constructor`, a name that about:memory cannot show; give it another",
        ),
        (
            "{\"path\": \"b\", \"units\": 7}",
            "the units of `b` of Main Process are none of 0, 1, 2 and 3",
        ),
        (
            "{\"path\": \"t/b\", \"units\": 1, \"process\": \"P\"}",
            "the unit of `t/b` of P is a count, and that of its tree bytes; a tree has one unit",
        ),
        (
            "{\"path\": \"t/a/b\", \"units\": 0, \"process\": \"P\"}, {\"path\": \"t/a/c\", \"units\": 0, \"process\": \"P\"}",
            "`t/a` of P is a report, and has reports below it; move it to a path of its own",
        ),
    ] {
        assert_eq!(said_of(&folder, second(report)), format!("about-memory: f.json: {words}"));
    }
}

#[test]
fn files_that_cannot_be_compared_are_named() {
    let folder = Folder::new();
    folder.write("a.json", GOOD);
    folder.write("b.json", GOOD.replace("true", "false"));
    folder.write("c.json", GOOD.replace(", \"description\": \".\"", ""));
    folder.write("d.json", GOOD.replace("\"kind\": 2", "\"kind\": 1"));
    for (file, words) in [
        ("b.json", "the two files differ in `hasMozMallocUsableSize`; they cannot be compared"),
        ("c.json", "c.json: report 0 (`t/a`): it has no `description`, which comparing needs"),
        (
            "d.json",
            "P: t/a: its kind is 1, unlike that of another report of this path; they must be the same",
        ),
    ] {
        assert_eq!(said(&folder.run(&["diff", "a.json", file])), format!("about-memory: {words}"));
    }
}

#[test]
fn what_is_no_file_is_said() {
    let folder = Folder::new();
    fs::create_dir(folder.path("d")).unwrap();
    folder.write("plain.json.gz", GOOD);
    folder.write("cut.json.gz", &gzip(GOOD.as_bytes())[..60]);
    let mut damaged = gzip(GOOD.as_bytes());
    damaged[30] ^= 0xff;
    folder.write("damaged.json.gz", damaged);
    for (file, words) in [
        ("none", "no such file"),
        ("d", "no memory report is in it"),
        ("plain.json.gz", "its name ends in .gz, but it is not gzip data; gzip it or rename it"),
        (
            "cut.json.gz",
            "the gzip stream ends too early: the file is cut off; save or copy it again",
        ),
        ("damaged.json.gz", "the gzip stream is damaged; save or copy the file again"),
    ] {
        let message = said(&folder.run(&[file]));
        assert!(message.starts_with(&format!("about-memory: {file}: {words}")), "{message}");
    }
    let message = said(&folder.run(&["diff", "plain.json.gz", "d"]));
    assert!(message.contains("plain.json.gz: its name ends in .gz"), "{message}");
    let message = said(&folder.run(&["diff", "d", "plain.json.gz"]));
    assert_eq!(message, "about-memory: d: a directory; name a file in it");
    let message = said(&folder.run(&["heap", "tree", "d"]));
    assert_eq!(message, "about-memory: d: cannot read the dump: a directory; name a file in it");
    let message = said(&folder.run(&["inspect", "core.of-nobody"]));
    assert!(message.starts_with("about-memory: no such file, and no process"), "{message}");
    // Of a folder with reports, the last one is shown.
    fs::write(folder.path("d/heap-1.json"), GOOD.replace("[", " [")).unwrap();
    fs::write(folder.path("d/heap-2.json"), GOOD).unwrap();
    let output = folder.run(&["d"]);
    folder.write("good.json", GOOD);
    assert_eq!(output.stdout, folder.run(&["good.json"]).stdout);
    let last = Path::new("d").join("heap-2.json");
    let note = format!("note: {}, the last of 2 in the folder\n", last.display());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), note);
}

#[test]
fn gzip_is_known_by_its_content_and_standard_input_by_a_dash() {
    let folder = Folder::new();
    folder.write("zipped", gzip(GOOD.as_bytes()));
    folder.write("plain", GOOD);
    let shown = folder.run(&["plain"]);
    assert!(shown.status.success());
    assert_eq!(folder.run(&["zipped"]).stdout, shown.stdout);
    let stdin = fs::File::open(folder.path("zipped")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    assert_eq!(command.arg("-").stdin(stdin).output().unwrap().stdout, shown.stdout);
}

#[test]
fn zipped_text_is_latin_1_as_in_firefox_unless_it_is_escaped_or_said_to_be_utf_8() {
    let folder = Folder::new();
    let shown = |path: &str, args: &[&str]| {
        folder.write("f.json.gz", gzip(GOOD.replace("t/a", path).as_bytes()));
        String::from_utf8(folder.run(&[&["f.json.gz"], args].concat()).stdout)
            .unwrap()
            .lines()
            .nth(4)
            .unwrap()
            .to_owned()
    };
    assert_eq!(shown("é", &[]), "0.00 MB ── Ã©");
    assert_eq!(shown("é", &["--utf8"]), "0.00 MB ── é");
    assert_eq!(shown("\\u00e9", &[]), "0.00 MB ── é");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = Folder::new();
    let reports: Vec<String> = (0..20_000)
        .map(|i| format!("{{\"path\": \"t/{i}\", \"units\": 0, \"amount\": 1}}"))
        .collect();
    let text = format!(
        "{{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [{}]}}",
        reports.join(",")
    );
    folder.write("f.json", text);
    let mut command = folder.command();
    command.args(["-v", "f.json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn notes_go_to_standard_error_or_where_asked() {
    let folder = Folder::new();
    let own = r#""memreport": {"version": 1, "process": {"name": "server", "pid": 7}, "notes": ["`a` was busy"], "sizes": "layouts",
        "skipped": [{"owner": "Index", "field": "cache", "reason": "a window owns it", "file": "index.rs", "line": 41}],
        "later": [1]}, "#;
    folder.write("f.json", GOOD.replace("\"P\"", "\"\"").replacen('{', &format!("{{{own}"), 1));
    let notes = "note: `a` was busy\n\
        note: sizes are requested sizes, without slop: the program declares no allocator of memreport\n\
        note: not measured: `Index.cache` (index.rs:41): a window owns it\n\
        note: the file holds what this version does not know: later; a later about-memory may\n";
    let text = "Total resident memory (approximate) -- 0.00 MB\nserver (pid 7)\nOther Measurements\n\n\
        0.00 MB (100.0%) -- t\n└──0.00 MB (100.0%) ── a\n\nEnd of server (pid 7)\n";
    let apart = folder.run(&["f.json"]);
    assert_eq!((apart.stdout, apart.stderr), (text.into(), notes.into()));
    let together = folder.run(&["f.json", "--notes"]);
    assert_eq!((together.stdout, together.stderr), (format!("{text}{notes}").into(), Vec::new()));
}

#[test]
fn several_files_are_processes_of_one_report() {
    let folder = Folder::new();
    folder.write("a.json", GOOD);
    folder.write("b.json", GOOD.replace("\"P\"", "\"Q\""));
    let names = |args: &[&str]| {
        let text = String::from_utf8(folder.run(args).stdout).unwrap();
        text.lines()
            .filter_map(|line| line.strip_prefix("End of "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["b.json", "a.json"]), ["P", "Q"]);
    assert_eq!(names(&["a.json", "a.json"]), ["P", "P [a.json]"]);
    assert_eq!(names(&["a.json", "b.json", "--process", "Q"]), ["Q"]);
}

#[test]
fn limits_hold() {
    let folder = Folder::new();
    // A kilobyte of gzip that is a megabyte of text, and refuses to be more than was allowed.
    let long = format!("{{\"a\": \"{}\"}}", "a".repeat(1 << 20));
    let bomb = gzip(long.as_bytes());
    assert!(bomb.len() < 1200, "{}", bomb.len());
    folder.write("bomb.json.gz", bomb);
    assert_eq!(
        said(&folder.run(&["bomb.json.gz", "--max-size", "1000KB"])),
        "about-memory: bomb.json.gz: more than 1024000 bytes of text; if it is to be trusted, raise the limit"
    );
    assert_eq!(
        said_of(&folder, format!("{{\"a\": {}", "[".repeat(1000))),
        "about-memory: f.json: more than 512 levels of nesting at byte 519; no memory report nests so deep"
    );
    assert_eq!(
        said_of(&folder, format!("{{\"a\": \"{}\"}}", "a".repeat(17 << 20))),
        "about-memory: f.json: a string or number of more than 16777216 bytes at byte 16908288; no memory report has one so long"
    );
}

#[test]
fn a_path_of_many_segments_is_shown() {
    let folder = Folder::new();
    folder.write("f.json", GOOD.replace("t/a", &format!("t/{}x", "a/".repeat(100_000))));
    let output = folder.run(&["f.json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.len() > 200_000);
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_does_not_fit_is_reported_as_such() {
    let full = fs::File::create("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    let output = command.args(["ps", "--folder", "/dev"]).stdout(full).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("about-memory: the answer cannot be written: "), "{message}");
    assert_eq!(output.status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn a_program_without_dmd_is_run_as_a_wrapper_alone() {
    let folder = Folder::new();
    let table: [(&[&str], i32, &str); 7] = [
        (&["--wrapper", "true"], 0, ""),
        (&["--wrapper", "false"], 1, ""),
        (&["--wrapper", "--fail-above", "50", "true"], 1, "nothing was measured, so nothing"),
        (&["--wrapper", "--fail-above", "50%", "true"], 1, "nothing was measured, so nothing"),
        (&["--wrapper", "--fail-above", "nan", "true"], 2, "write it as `0.5%`"),
        (&["--wrapper", "--fail-above=-1", "true"], 2, "write it as `0.5%`"),
        (&["--wrapper", "no-such-program"], 2, "no-such-program: no such program"),
    ];
    for (args, code, expected) in table {
        let output = folder.run(&[&["run"], args].concat());
        let notes = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {notes}");
        assert!(notes.contains(expected), "{args:?}: {notes}");
    }
}

#[cfg(unix)]
#[test]
fn a_dump_is_requested_of_one_program_alone() {
    let folder = Folder::new();
    let table: [(&[&str], &str); 3] = [
        (&["4194305", "4194306", "--dump"], "a dump is of one program: ask each for its own"),
        (&["4194305", "--dump"], "there is no process 4194305"),
        (&["4194305", "4194306"], "there is no process 4194305"),
    ];
    for (args, expected) in table {
        let output = folder.run(&[&["snapshot", "-o", "heap.json.gz"], args].concat());
        assert_eq!(said(&output), format!("about-memory: {expected}"), "{args:?}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn files_that_could_be_meant_are_named() {
    let folder = Folder::new().with("report.json", GOOD).with("notes.txt", "no report");
    let dump = r#"{"version": 5, "invocation": {"mode": "live"}, "blockList": []}"#;
    folder.write("before", dump);
    let message = said(&folder.run(&["heap", "tree", "befor"]));
    // Running programs answer on Unix alone.
    let name = if cfg!(unix) { ", and no running program has this name" } else { "" };
    let expected =
        format!("about-memory: befor: no such file{name}\n  files in that folder: before");
    assert!(message.starts_with(&expected), "{message}");
    let message = said(&folder.run(&["repor.json"]));
    assert_eq!(
        message,
        "about-memory: repor.json: no such file\n  files in that folder: report.json, before"
    );
    let message = said(&folder.run(&["recording", "none.gz"]));
    assert_eq!(message, "about-memory: none.gz: no such file");
    let message = said(&folder.run(&["heap", "no/such.json"]));
    assert_eq!(message, "about-memory: no/such.json: no such file; there is no folder no either");
}

#[cfg(unix)]
#[test]
fn a_question_to_a_fleet_needs_words() {
    let message = said(&Folder::new().run(&["fleet"]));
    assert!(
        message.starts_with("about-memory: name a question and a dataset: `about-memory"),
        "{message}"
    );
}
