//! Tests requests to running programs over their sockets.

mod clients;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use about_memory::input::live::{Connection, LiveError, Program};
use about_memory::{Cli, Context};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Parser;
use flate2::read::GzDecoder;
use memreport::serve::Request;

const SERVED: &str = env!("CARGO_BIN_EXE_served");

/// A program that serves until it is dropped.
struct Served {
    child: Child,
    folder: PathBuf,
    socket: PathBuf,
}

impl Served {
    fn start(name: &str, words: &[&str]) -> Self {
        Served::start_with(name, words, |_| ())
    }

    fn start_with(name: &str, words: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let folder =
            std::env::temp_dir().join(format!("memreport-live-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new(SERVED);
        command.args(words).arg(format!("folder={}", folder.display()));
        command.arg(format!("save={}", folder.join("saved").display()));
        command.env_remove("DMD").stdin(Stdio::piped()).stdout(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("it prints its socket");
        Served { child, folder, socket: line.trim().into() }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn connection(&self) -> Connection {
        let program = Program { pid: self.pid(), socket: self.socket.clone() };
        Connection::new(program, Duration::from_secs(20))
    }

    fn ask(&self, request: &Request) -> Result<String, LiveError> {
        let parts = self.connection().ask(request)?;
        Ok(parts.iter().map(|part| String::from_utf8_lossy(&part.bytes)).collect())
    }

    fn report(&self) -> serde_json::Value {
        unpack(&self.connection().report(false).expect("it answers").report)
    }

    fn saved(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.join("saved")).into_iter().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.retain(|file| !file.to_string_lossy().contains("incomplete"));
        files.sort();
        files
    }

    /// Has the program allocate 10 MB.
    fn grow(&mut self) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(b"+").expect("it reads");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
        if !std::thread::panicking() {
            assert!(status.expect("it ends").success());
        }
    }
}

fn unpack(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_reader(GzDecoder::new(bytes)).expect("JSON")
}

fn amount(report: &serde_json::Value, path: &str) -> Option<i64> {
    let reports = report["reports"].as_array().expect("reports");
    reports.iter().find(|report| report["path"] == path)?["amount"].as_i64()
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_program_reports_of_itself_and_dmd_too_when_it_is_awake() {
    let asleep = Served::start("asleep", &[]);
    assert_eq!(amount(&asleep.report(), "explicit/served/cache"), Some(1_003_504));
    let error = asleep.connection().report(true).expect_err("no dump").to_string();
    assert!(
        error.ends_with("there is no dump: DMD does not track in this program at the moment"),
        "{error}"
    );

    let awake = Served::start_with("awake", &[], |command| _ = command.env("DMD", "1"));
    let report = awake.connection().report(true).expect("both");
    let dump = unpack(&report.dump.expect("it was requested"));
    let allocated = amount(&unpack(&report.report), "heap-allocated");
    assert_eq!(allocated, dump["memreport"]["heapAllocated"].as_i64());
    assert!(allocated > Some(1_000_000));
}

#[test]
fn the_tree_of_a_running_program_has_the_types_of_its_tracker_and_the_words_of_its_stacks() {
    let tree = |mode: &str| {
        let program = Served::start_with("tree", &[], |command| _ = command.env("DMD", mode));
        let words = ["about-memory", "tree", &program.pid().to_string(), "--json", "--min", "0"];
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let cli = Cli::try_parse_from(words).expect("right words");
        let done = cli.run(&mut Context::new(&mut out, &mut notes));
        done.unwrap_or_else(|error| panic!("{mode}: {error}"));
        let tree: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        ["bytes", "named", "typed"].map(|key| tree[key].as_u64().expect("a sum"))
    };
    // Its scan has the stack that allocated each block, and so all types. Several threads share
    // some blocks of its server.
    let [bytes, named, typed] = tree("--mode=scan");
    assert!(bytes > 1_000_000 && named > bytes / 100 * 95, "{named} of {bytes}");
    assert!(typed > bytes / 100 * 95, "{typed} of {bytes}");
    // It is read from outside, as a program without a tracker.
    let [bytes, named, _] = tree("1");
    assert!(bytes > 1_000_000 && named > bytes / 100 * 95, "{named} of {bytes}");
}

#[test]
fn tracking_begins_and_ends_on_request() {
    let program = Served::start("track", &[]);
    let tracking = || program.connection().status().expect("it answers").tracking;
    assert!(tracking().starts_with("asleep"), "{}", tracking());
    let words = Request::new("track").with("options", "--mode=live --stacks=none");
    assert_eq!(program.ask(&words).expect("it begins"), "live, no stacks");
    assert_eq!(tracking(), "live, no stacks");
    let profile = Request::new("track").with("options", "--mode=profile --sample-bytes=64K");
    assert_eq!(program.ask(&profile).expect("otherwise"), "profile, a sample each 65536 bytes");
    assert_eq!(
        program.ask(&Request::new("untrack")).expect("off"),
        "off: new blocks are not tracked"
    );
    let error =
        program.ask(&Request::new("track").with("options", "--mode=x")).expect_err("no mode");
    assert!(error.to_string().contains("--mode=x"), "{error}");
    let error = program.ask(&Request::new("nonsense")).expect_err("no command").to_string();
    assert!(error.contains("unknown command `nonsense`"), "{error}");
}

#[test]
fn minimizing_empties_the_cache() {
    let program = Served::start("minimize", &[]);
    assert!(amount(&program.report(), "explicit/served/cache") > Some(1_000_000));
    let message = program.ask(&Request::new("minimize")).expect("it does");
    assert!(message.starts_with("1 hook was called; heap-allocated: "), "{message}");
    assert_eq!(amount(&program.report(), "explicit/served/cache"), Some(0));
}

#[test]
fn a_reporter_that_does_not_return_is_named_and_the_others_report() {
    let program = Served::start_with("stuck", &[], |command| _ = command.env("DMD", "1"));
    program.ask(&Request::new("stick").with("on", "yes")).expect("it hangs");
    let report = |name: &str, seconds: &str| {
        let request = Request::new("report").with(name, seconds);
        let parts = program.connection().ask(&request).expect("it answers all the same");
        unpack(&parts[0].bytes)
    };
    // `patience` is the argument's old name.
    for name in ["timeout", "patience", "timeout"] {
        let report = report(name, "1.5");
        let notes = report["memreport"]["notes"].to_string();
        assert!(notes.contains("the reporter tests/src/bin/served.rs:"), "{notes}");
        assert!(notes.contains("has been at work for"), "{notes}");
        let missed = report["memreport"]["missed"].to_string();
        assert!(missed.contains("tests/src/bin/served.rs:"), "{missed}");
        assert!(missed.contains(r#""reason":"running""#), "{missed}");
        assert_eq!(amount(&report, "explicit/served/cache"), Some(1_003_504));
        assert_eq!(amount(&report, "served/unstuck"), None);
    }
    // The reporter that hangs does not keep DMD from its findings.
    assert!(program.connection().report(true).expect("it answers").dump.is_some());
    // Requests without reporters are served meanwhile.
    assert_eq!(program.ask(&Request::new("ping")).expect("at once"), "");
    program.ask(&Request::new("stick").with("on", "no")).expect("it goes on");
    wait_until("the reporter comes back", || {
        amount(&report("timeout", "5"), "served/unstuck") == Some(1)
    });
}

#[test]
fn a_lock_that_stays_held_is_waited_for_in_the_time_limit_and_named() {
    let program = Served::start("locked", &["locked"]);
    let request = Request::new("report").with("timeout", "1");
    let parts = program.connection().ask(&request).expect("it answers");
    let report = unpack(&parts[0].bytes);
    let missed = report["memreport"]["missed"].to_string();
    assert_eq!(missed, r#"[{"reason":"locked","reporter":"explicit/served/words"}]"#);
    let unnamed = amount(&report, "explicit/heap-unclassified-or-missed");
    assert!(unnamed > Some(10_000), "the words are in it: {unnamed:?}");
    assert_eq!(amount(&report, "explicit/served/words"), Some(0));
    let notes = report["memreport"]["notes"].to_string();
    assert!(
        notes.contains("explicit/served/words: 1 value was locked by somebody else"),
        "{notes}"
    );
}

#[test]
fn a_signal_saves_a_report_and_only_the_last_few_are_kept() {
    let program = Served::start_with("signal", &[], |command| _ = command.env("DMD", "1"));
    let mut last = Vec::new();
    for round in 0..3 {
        let pid = program.pid().to_string();
        let sent = Command::new("kill").args(["-USR2", &pid]).status().expect("kill is there");
        assert!(sent.success());
        wait_until("the report is saved", || {
            let saved = program.saved();
            saved != last && saved.len() == 2 * (round + 1).min(2)
        });
        last = program.saved();
    }
    let report = last.iter().find(|file| !file.to_string_lossy().contains(".dmd.")).expect("one");
    let report = unpack(&std::fs::read(report).expect("it is whole"));
    assert_eq!(report["memreport"]["moment"], "at a signal");
    assert!(amount(&report, "explicit/served/words").is_some());
}

#[test]
fn what_starts_a_program_may_ignore_the_signal() {
    let program = Served::start_with("ignored", &[], |command| {
        let mut ignoring = Command::new("env");
        ignoring.arg("--ignore-signal=USR2").arg(SERVED).args(command.get_args());
        ignoring.env_remove("DMD").stdin(Stdio::piped()).stdout(Stdio::piped());
        *command = ignoring;
    });
    let pid = program.pid().to_string();
    let sent = Command::new("kill").args(["-USR2", &pid]).status().expect("kill is there");
    assert!(sent.success());
    wait_until("the report is saved", || program.saved().len() == 1);
}

#[test]
fn growth_saves_a_report() {
    let mut program = Served::start("steps", &["steps"]);
    // The first sample only sets the baseline of growth.
    std::thread::sleep(Duration::from_millis(1200));
    program.grow();
    wait_until("the report is saved", || !program.saved().is_empty());
    let report = unpack(&std::fs::read(&program.saved()[0]).expect("it is whole"));
    let moment = report["memreport"]["moment"].as_str().expect("text");
    assert!(moment.starts_with("resident memory grew by "), "{moment}");
    let reasons = || {
        let report = program.report();
        let events = report["memreport"]["events"].as_array().cloned().unwrap_or_default();
        events.iter().map(|event| event["reason"].to_string()).collect::<Vec<_>>()
    };
    wait_until("listeners get an event", || reasons() == ["\"threshold\""]);
    program.ask(&Request::new("minimize")).expect("it answers");
    assert_eq!(reasons()[1..], ["\"minimize\"", "\"trim\""]);
}

#[test]
fn the_last_snapshots_are_kept_and_reported_themselves() {
    let program = Served::start("history", &["history"]);
    let history = || program.connection().ask(&Request::new("history")).expect("it answers");
    wait_until("three snapshots are kept", || history().len() == 3);
    let first = history()[0].bytes.clone();
    assert!(amount(&unpack(&first), "explicit/served/cache").is_some());
    wait_until("the oldest goes", || history()[0].bytes != first);
    assert!(amount(&program.report(), "explicit/memreport/history") > Some(1000));
}

fn ps(words: &[&str]) -> String {
    let words = ["about-memory", "ps"].iter().chain(words);
    let cli = Cli::try_parse_from(words).expect("the words are right");
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    cli.run(&mut Context::new(&mut out, &mut notes)).expect("it prints");
    assert_eq!(String::from_utf8_lossy(&notes), "");
    String::from_utf8(out).expect("text")
}

#[test]
fn ps_lists_programs_with_open_sockets() {
    let one = Served::start("ps", &["name=indexer"]);
    let folder = one.folder.display().to_string();
    let text = ps(&["--folder", &folder, "--timeout", "20"]);
    let (head, row) = text.trim_end().split_once('\n').expect("one program");
    for column in ["pid", "name", "resident", "heap", "unclassified", "tracking"] {
        assert!(head.split_whitespace().any(|word| word == column), "{column}: {text}");
    }
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..2], [&one.pid().to_string()[..], "indexer"]);
    assert!(cells.iter().any(|cell| cell.ends_with('%')), "{text}");
    assert!(text.contains("asleep: `about-memory track` wakes it"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&ps(&["--folder", &folder, "--json", "--timeout", "20"]))
            .expect("JSON");
    assert_eq!(json[0]["name"], "indexer");
    assert!(json[0]["heapUnclassified"].as_i64() > Some(0), "{json}");
    let empty = one.folder.join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    assert!(ps(&["--folder", &empty.display().to_string()]).starts_with("No running program"));
}

#[test]
fn a_report_and_a_running_program_can_be_compared() {
    let mut program = Served::start("diff", &[]);
    let before = program.folder.join("before.json.gz");
    let report = program.connection().report(false).expect("it answers").report;
    std::fs::write(&before, report).expect("it is written");
    program.grow();
    wait_until("it grows", || {
        let (before, after) = (before.display().to_string(), program.socket.display().to_string());
        let words = ["about-memory", "diff", &after, "--since", &before];
        let cli = Cli::try_parse_from(words).expect("right words");
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        cli.run(&mut Context::new(&mut out, &mut notes)).expect("they can be compared");
        String::from_utf8_lossy(&out).contains("10.0")
    });
}

/// Runs `about-memory`; returns its error.
fn about_memory(words: &[&str]) -> Result<(), String> {
    let words = ["about-memory"].iter().chain(words);
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let cli = Cli::try_parse_from(words).expect("the words are right");
    let done = cli.run(&mut Context::new(&mut out, &mut notes));
    done.map(drop).map_err(|error| error.to_string())
}

#[test]
fn snapshots_and_pages_leave_out_private_words_on_request() {
    let served = Served::start("anonymized", &[]);
    let program = served.socket.to_str().expect("text");
    let file = |name: &str| served.folder.join(name).to_str().expect("text").to_owned();
    let (open, anonymous, page) = (file("open.json"), file("anonymous.json"), file("page.html"));
    about_memory(&["snapshot", program, "-o", &open]).expect("a snapshot");
    about_memory(&["snapshot", program, "--anonymize", "-o", &anonymous]).expect("a snapshot");
    let has = |file: &str, word: &str| {
        std::fs::read_to_string(file).expect("it was written").contains(word)
    };
    assert!(has(&open, "visited/private-word") && !has(&open, "visited/<anonymized>"));
    assert!(has(&anonymous, "visited/<anonymized>") && !has(&anonymous, "private-word"));

    let build = |of: &str| about_memory(&["page", "build", "--anonymize", of, "-o", &page]);
    for of in [&*anonymous, program] {
        build(of).expect("it has no private words");
        assert!(!page_reports(&page).contains("private-word"), "{of}");
        assert!(page_reports(&page).contains("<anonymized>"), "{of}");
    }
    let refused = build(&open).expect_err("it has private words");
    assert!(refused.contains("take it with `snapshot --anonymize`"), "{refused}");
}

/// Returns the reports of the first snapshot in a page.
fn page_reports(page: &str) -> String {
    let text = std::fs::read_to_string(page).expect("it was written");
    let (_, rest) = text.split_once("data-name=\"moments/0/reports\">").expect("reports");
    let (packed, _) = rest.split_once("</script>").expect("an end");
    let packed = BASE64_STANDARD.decode(packed).expect("base64");
    let mut reports = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut reports).expect("gzip");
    reports
}
