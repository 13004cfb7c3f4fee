//! Tests censuses of a program of known heap: in the process, from its dump, and over its socket.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use about_memory::input::live::{self, Target};
use memreport_analysis::census::{Breakdown, Census, FileOptions, of_dump};
use memreport_analysis::read::{self, Dump};
use memreport_analysis::symbols::Symboliser;
use serde_json::Value;

const CENSUSED: &str = env!("CARGO_BIN_EXE_censused");

/// The program's bytes; glibc adds 8 to each block.
const PAGES: i64 = 1000 * 4008;
const LIST_OF_PAGES: i64 = 8008;
const SHARED: i64 = 70_008;
const FORGOTTEN: i64 = 3000;

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    let name = format!("memreport-census-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&path).expect("a folder");
    Folder(path)
}

/// Runs the program, and returns its census and its dump.
fn taken(name: &str, mode: &str, breakdown: &str) -> (Value, Dump) {
    let folder = folder(name);
    let (report, census) = (folder.0.join("report.json"), folder.0.join("census.json"));
    let mut command = Command::new(CENSUSED);
    command.args([report.as_os_str(), census.as_os_str(), breakdown.as_ref()]).env("DMD", mode);
    assert!(command.status().expect("it starts").success(), "{mode}");
    let dump = read::read_file(&dmd::dump::beside(&report)).expect("a dump");
    let census = std::fs::read(&census).expect("a census");
    (serde_json::from_slice(&census).expect("it is JSON"), dump)
}

fn json(census: &Census) -> Value {
    let mut out = Vec::new();
    census.write_json(&mut out).expect("memory is there");
    serde_json::from_slice(&out).expect("it is JSON")
}

fn of(dump: &Dump, breakdown: &str) -> Value {
    let breakdown: Breakdown = breakdown.parse().expect("it is one");
    json(&of_dump(dump, &breakdown, &FileOptions::default()))
}

fn bytes(value: &Value) -> i64 {
    value["bytes"].as_i64().unwrap_or_else(|| panic!("no bytes: {value}"))
}

/// Breakdowns that need no symbols.
const PLAIN: &str = r#"[{"by":"reporter","then":{"by":"sizeClass"}},{"by":"reporter","depth":1},{"by":"thread"},
    {"by":"coarseType","unreported":{"by":"scope"}},{"by":"field"},{"by":"type"},{"by":"age"},{"by":"count","slop":true}]"#;

#[test]
fn a_census_in_the_process_is_that_of_its_dump() {
    for (name, mode) in [
        ("dark", "1"),
        ("live", "--mode=live"),
        ("cumulative", "--mode=cumulative"),
        ("scan", "--mode=scan"),
        ("none", "--stacks=none"),
        ("times", "--mode=dark-matter --times=yes"),
    ] {
        let (census, dump) = taken(name, mode, PLAIN);
        assert_eq!(census, of(&dump, PLAIN), "{mode}");
    }
}

#[test]
fn a_known_heap_is_told_apart() {
    let (census, mut dump) = taken("known", "1", PLAIN);
    let [by_reporter, by_root, by_thread, by_state, by_field, by_type, ..] =
        &census.as_array().expect("several")[..]
    else {
        panic!("{census}");
    };
    let pages = &by_reporter["explicit/censused/index"];
    assert_eq!(bytes(&pages["2049-4096"]), PAGES);
    assert_eq!(bytes(&pages["4097-8192"]), LIST_OF_PAGES);
    assert_eq!(bytes(&by_root["explicit"]), PAGES + LIST_OF_PAGES + SHARED);
    assert_eq!(bytes(&by_thread["thread 2"]), 200 * FORGOTTEN);
    assert_eq!(bytes(&by_state["once"]), PAGES + LIST_OF_PAGES);
    assert_eq!(bytes(&by_state["twice"]), SHARED);
    assert_eq!(bytes(&by_state["unreported"]["import"]), 200 * FORGOTTEN);
    assert_eq!(bytes(&by_field["censused::Index.pages"]), PAGES + LIST_OF_PAGES);
    assert_eq!(bytes(&by_type["owned by censused::Index"]), PAGES + LIST_OF_PAGES);

    let notes = Symboliser::default().symbolicate(&mut dump).notes;
    let types = of(&dump, r#"{"by":"type"}"#);
    assert_eq!(bytes(&types["Box<[u8; 4000]>"]), PAGES, "{notes:?} {types}");
    let stacks = of(&dump, r#"{"by":"scope","then":{"by":"allocationStack","depth":1}}"#);
    let [first, ..] = &stacks["import"].as_array().expect("pairs")[..] else { panic!("{stacks}") };
    let frame = first[0][0].as_str().expect("a frame");
    assert!(frame.contains("forget") || frame.contains("alloc"), "{frame}");
    let files = of(&dump, r#"{"by":"filename"}"#);
    let own = files
        .as_object()
        .expect("an object")
        .iter()
        .find(|(name, _)| name.ends_with("censused.rs"));
    assert!(own.is_some_and(|(_, all)| bytes(all) > PAGES + 700 * FORGOTTEN), "{files}");
}

#[test]
fn a_sample_stands_for_the_heap() {
    let everything = r#"{"by":"reporter","then":{"by":"count","slop":true}}"#;
    let (census, dump) = taken("sampled", "--mode=profile --sample-bytes=4096", everything);
    assert_eq!(census, of(&dump, everything));
    let pages = &census["explicit/censused/index"];
    assert!((PAGES * 8 / 10..PAGES * 12 / 10).contains(&bytes(pages)), "{census}");
    assert!(pages["sampledBytes"].as_i64() < Some(PAGES * 8 / 10), "{census}");
}

/// A program that serves until it is dropped.
struct Served {
    child: Child,
    /// It grows for each byte.
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Served {
    fn start(mode: &str) -> (Self, String) {
        let mut command = Command::new(CENSUSED);
        let piped = command.env("DMD", mode).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let input = child.stdin.take();
        let mut served = Served { child, input, output };
        let pid = served.line();
        (served, pid)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it prints a line");
        line.trim().to_owned()
    }

    fn grow(&mut self) {
        self.input.as_mut().expect("a pipe").write_all(b"x").expect("it reads");
        assert_eq!(self.line(), "grown");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_running_program_is_counted_before_and_after() {
    let (mut served, pid) = Served::start("1");
    let census = || {
        let target = Target::Pid(pid.parse().expect("a number"));
        let connection =
            live::choose(&target, std::time::Duration::from_secs(60)).expect("it serves");
        let dump = connection.report(true).expect("it answers").dump.expect("DMD is awake");
        let dump = read::read(&dump[..], read::DEFAULT_LIMIT).expect("it is one");
        let breakdown = Breakdown::of_words("reporter,size").expect("it is one");
        of_dump(&dump, &breakdown, &FileOptions::default())
    };
    let before = census();
    served.grow();
    let growth = json(&census().since(&before).expect("the same breakdown"));
    assert_eq!(bytes(&growth["noReporter"]["2049-4096"]), 1000 * FORGOTTEN, "{growth}");
    assert!(growth.get("explicit/censused/index").is_none(), "{growth}");
}
