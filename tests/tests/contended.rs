//! Tests snapshots of a program that holds the locks of its values half of the time.
//!
//! Every snapshot is complete, or states which reporters it misses and calls none of their bytes
//! unclassified.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use about_memory::input::live::{Connection, Program};
use about_memory::{Cli, Context};
use clap::Parser as _;
use flate2::read::GzDecoder;
use memreport::serve::Request;
use serde_json::Value;

/// A running subject.
struct Contended {
    child: Child,
    folder: PathBuf,
    socket: PathBuf,
    /// The bytes that no reporter reports.
    unreported: i64,
}

impl Contended {
    fn start(name: &str, words: &[&str]) -> Self {
        let folder =
            std::env::temp_dir().join(format!("memreport-contended-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_contended"));
        command.args(words).arg(format!("folder={}", folder.display())).env("DMD", "--stacks=none");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("it prints its socket");
        let (socket, unreported) = line.trim().split_once(' ').expect("two words");
        let unreported = unreported.parse().expect("bytes");
        Contended { child, folder, socket: socket.into(), unreported }
    }

    fn connection(&self, timeout: Duration) -> Connection {
        Connection::new(Program { pid: self.child.id(), socket: self.socket.clone() }, timeout)
    }

    /// Runs `about-memory WORDS`. Returns its exit status, its answer and its notes.
    fn shown(&self, words: &[&str]) -> (ExitCode, String, String) {
        let cli = Cli::try_parse_from(["about-memory"].iter().chain(words)).expect("right words");
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let code = cli.run(&mut Context::new(&mut out, &mut notes)).expect("it answers");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (code, text(out), text(notes))
    }
}

impl Drop for Contended {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn unpack(bytes: &[u8]) -> Value {
    serde_json::from_reader(GzDecoder::new(bytes)).expect("JSON")
}

fn amount(report: &Value, path: &str) -> Option<i64> {
    let reports = report["reports"].as_array().expect("reports");
    reports.iter().find(|report| report["path"] == path)?["amount"].as_i64()
}

/// Returns the bytes of `heap-allocated` that no report on the heap names, as viewers compute them.
fn unclassified(report: &Value) -> i64 {
    let is_heap = |report: &&Value| {
        report["kind"] == 1
            && report["path"].as_str().is_some_and(|path| path.starts_with("explicit/"))
    };
    let reports = report["reports"].as_array().expect("reports");
    let reported: i64 =
        reports.iter().filter(is_heap).filter_map(|report| report["amount"].as_i64()).sum();
    amount(report, "heap-allocated").expect("it counts") - reported
}

const OR_MISSED: &str = "explicit/heap-unclassified-or-missed";

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn every_snapshot_is_complete_or_marked() {
    let program = Contended::start("all", &["snapshots"]);
    let connection = program.connection(Duration::from_secs(60));
    for round in 0..20 {
        let with_dump = round % 2 == 0;
        let taken = connection.report(with_dump).expect("an answer before the time limit");
        assert_eq!(taken.dump.is_some(), with_dump);
        let report = unpack(&taken.report);
        let missed = &report["memreport"]["missed"];
        if missed.as_array().is_some_and(|missed| !missed.is_empty()) {
            assert!(amount(&report, OR_MISSED) > Some(0), "{missed}");
            assert_eq!(unclassified(&report), 0, "{missed}");
        } else {
            assert_eq!(amount(&report, OR_MISSED), None);
            let distance = (unclassified(&report) - program.unreported).abs();
            let heap = amount(&report, "heap-allocated").expect("it counts");
            assert!(distance * 200 < heap, "off by {distance} of {heap} bytes: {report}");
        }
    }
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn a_value_that_stays_locked_is_named_where_the_number_stands() {
    let program = Contended::start("deaf", &["deaf"]);
    let folder = program.folder.display().to_string();
    let incomplete = format!("{:?}", ExitCode::from(3));
    // Comparing exit statuses takes their text.
    let is_incomplete = |code: ExitCode| format!("{code:?}") == incomplete;

    let (code, text, _) = program.shown(&["ps", "--folder", &folder, "--timeout", "20"]);
    assert!(text.contains("% or missed") && is_incomplete(code), "{text}");
    let (_, text, _) = program.shown(&["ps", "--folder", &folder, "--timeout", "20", "--json"]);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json[0]["heapUnclassified"], Value::Null);
    assert!(json[0]["heapUnclassifiedOrMissed"].as_i64() > Some(16_000_000), "{text}");

    let file = program.folder.join("heap.json.gz").display().to_string();
    let socket = program.socket.display().to_string();
    let words = ["snapshot", &socket, "--dump", "--timeout", "20", "--output", &file];
    // On a busy machine a reporter that waits may be out of time before its lock is.
    let is_locked = (0..3).any(|_| {
        let (code, _, notes) = program.shown(&words);
        assert!(is_incomplete(code), "{notes}");
        notes.contains("incomplete: missed explicit/contended/first (locked)")
    });
    assert!(is_locked);

    let (code, text, notes) = program.shown(&[&file]);
    assert!(text.contains("── heap-unclassified-or-missed") && is_incomplete(code), "{text}");
    assert!(notes.contains("incomplete: missed explicit/contended/first (locked)"), "{notes}");
    let (code, text, _) = program.shown(&["explain-rss", &file]);
    assert!(text.contains("explicit/heap-unclassified-or-missed") && is_incomplete(code), "{text}");
    assert!(text.contains("note: incomplete: missed explicit/contended/first (locked)"), "{text}");
    let (code, text, _) = program.shown(&["metrics", &file]);
    assert!(
        text.contains("{path=\"explicit/heap-unclassified-or-missed\",kind=\"heap\"}"),
        "{text}"
    );
    assert!(!text.contains("{path=\"explicit/heap-unclassified\"") && is_incomplete(code));
}

#[test]
fn many_occasions_to_keep_a_snapshot_do_not_keep_clients_waiting() {
    let program = Contended::start("fair", &["snapshots"]);
    // Shorter than a collection takes, so that one is always due.
    let request = Request::new("report").with("timeout", "30");
    for _ in 0..5 {
        let answer = program.connection(Duration::from_secs(60)).ask(&request);
        assert!(!answer.expect("in its turn").is_empty());
    }
}
