//! Tests single allocations: the ages of blocks, the sites of values, and the allocation log.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use about_memory::input::live::{self, Connection};
use about_memory::{Cli, Context};
use clap::Parser;
use memreport::serve::Request;

dmd::global_allocator!();

const SUBJECT: &str = env!("CARGO_BIN_EXE_log");

/// Returns the path of a file for this test alone.
fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("memreport-log-{}-{name}", std::process::id()))
}

#[test]
fn a_dump_says_how_old_blocks_are() {
    for mode in ["dark-matter", "scan"] {
        let report = file(&format!("ages-{mode}.json"));
        let beside = dmd::dump::beside(&report);
        let status = Command::new(SUBJECT)
            .env("DMD", format!("--mode={mode} --times=yes"))
            .arg("ages")
            .arg(&report)
            .status();
        assert!(status.expect("it starts").success());
        let dump = memreport_analysis::read::read_file(&beside).expect("a dump");
        assert!(dump.extension.as_ref().is_some_and(|ours| ours.times));
        let of = |size: u64| dump.blocks.iter().filter(move |block| block.req == size);
        let youngest =
            of(10_000).filter_map(|block| block.kind.age_ms).min().expect("they have ages");
        let oldest =
            of(20_000).filter_map(|block| block.kind.age_ms).max().expect("they have ages");
        // An age class is up to 9 % below the age.
        assert!(youngest >= 400 * 91 / 100, "{youngest} ms");
        assert!(oldest + 300 < youngest * 110 / 100, "{oldest} and {youngest} ms");
        let groups = of(10_000).count();
        assert_eq!(of(10_000).map(|block| block.num).sum::<u64>(), 50);
        // All of them are made within a few milliseconds.
        assert!(mode == "scan" || groups < 10, "{groups} groups");
        assert!(dump.blocks.iter().all(|block| block.kind.age_ms.is_some()));
        for path in [report, beside] {
            std::fs::remove_file(path).expect("it was written");
        }
    }
}

/// Runs a part of the subject, which checks itself, with this `$DMD`.
fn holds(part: &str, variable: Option<&str>) {
    let mut command = Command::new(SUBJECT);
    command.args(part.split(' ')).env_remove("DMD");
    if let Some(words) = variable {
        command.env("DMD", words);
    }
    let output = command.output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{part} with DMD={variable:?}: {message}");
}

#[test]
fn the_log_keeps_the_newest_and_says_what_is_lost() {
    for variable in
        [None, Some("1"), Some("--mode=profile --sample-bytes=64K"), Some("--stacks=none")]
    {
        holds("log", variable);
    }
}

#[test]
fn values_have_sites_or_it_is_said_why_not() {
    holds("sites", None);
}

#[test]
fn samples_are_as_big_as_their_probabilities_say() {
    for variable in [
        None,
        Some("--mode=live"),
        Some("--stacks=none"),
        Some("--mode=cumulative --stacks=partial"),
    ] {
        holds("probabilities", variable);
    }
}

#[test]
fn reading_names_of_functions_is_in_no_log() {
    holds("names", None);
    holds("names", Some("1"));
}

#[test]
fn an_observer_is_limited_to_threads_and_scopes() {
    for variable in [None, Some("1"), Some("--mode=profile")] {
        holds("limits", variable);
    }
}

#[test]
fn each_of_several_observers_has_its_own_log() {
    for variable in [None, Some("1")] {
        holds("several", variable);
    }
}

#[test]
fn types_are_told_by_the_functions_that_allocate() {
    let mut observer = dmd::observe::Observer::start().expect("the allocator is DMD's");
    let words: Vec<String> = std::hint::black_box(Vec::with_capacity(4321));
    let numbers = std::hint::black_box(Box::new([7_u64; 123]));
    let entries = observer.drain_allocations_log().expect("it observes").entries;
    drop(observer);
    // Other tests allocate meanwhile, also blocks of these sizes.
    let places = [words.as_ptr().addr(), std::ptr::from_ref(&*numbers).addr()];
    let wanted: Vec<_> = places
        .into_iter()
        .filter_map(|place| entries.iter().rfind(|entry| entry.address() == place).copied())
        .collect();
    let names = dmd::census::type_names(&wanted).expect("ours");
    assert_eq!(names, [Some("[String]".to_owned()), Some("Box<[u64; 123]>".to_owned())]);
    drop((words, numbers));
}

#[test]
fn nothing_is_lost_unsaid_while_four_threads_write() {
    for variable in [None, Some("1")] {
        holds("stress 0.3", variable);
    }
}

/// A program that serves until it is dropped.
struct Served {
    child: Child,
    folder: PathBuf,
    socket: String,
}

impl Served {
    fn start(name: &str) -> Self {
        let folder = file(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new(SUBJECT);
        command.arg("served").arg(&folder).env_remove("DMD");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("it prints its socket");
        Served { child, folder, socket: line.trim().to_owned() }
    }

    fn connection(&self) -> Connection {
        let target = self.socket.parse().expect("a path is a target");
        live::choose(&target, Duration::from_secs(20)).expect("it serves")
    }

    fn tracking(&self) -> String {
        self.connection().status().expect("it answers").tracking
    }

    /// Returns the output of `about-memory log` for it.
    fn log(&self, words: &[&str]) -> String {
        let all = ["about-memory", "log", &self.socket].into_iter().chain(words.iter().copied());
        let cli = Cli::try_parse_from(all).expect("words that are known");
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        cli.run(&mut Context::new(&mut out, &mut notes)).expect("it can be asked");
        assert_eq!(String::from_utf8_lossy(&notes), "");
        String::from_utf8(out).expect("text")
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

#[test]
fn a_running_program_is_followed_and_goes_back_to_what_it_was() {
    let served = Served::start("followed");
    assert!(served.tracking().starts_with("asleep"), "{}", served.tracking());
    let text = served.log(&["--for", "0.5", "--every", "0.1"]);
    assert!(text.contains("  4,344 bytes  [String]  thread worker ("), "{text}");
    assert!(text.contains(")  in request\n    log::served::work ("), "{text}");
    assert_eq!(served.tracking(), "off: new blocks are not tracked");

    let json = served.log(&["--for", "0.5", "--json"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let strangers: Vec<_> = lines.iter().filter(|line| line["thread"] != "worker").collect();
    assert!(strangers.is_empty(), "only the worker allocates: {strangers:?}");
    let vectors: Vec<_> = lines.iter().filter(|line| line["requested"] == 4344).collect();
    let words = lines.iter().filter(|line| line["requested"] == 28).count();
    // One every 5 ms, but this machine may be busy.
    assert!(vectors.len() > 10 && vectors.len().abs_diff(words) <= 1, "{json}");
    let times: Vec<_> = lines.iter().filter_map(|line| line["timeUs"].as_u64()).collect();
    assert!(times.len() == lines.len() && times.is_sorted(), "{json}");
    for line in vectors {
        assert_eq!(line["type"], "[String]");
        assert_eq!(line["thread"], "worker");
        assert_eq!(line["scope"], serde_json::json!(["request"]));
        assert!(line["stack"][0].as_str().is_some_and(|frame| frame.contains("served::work")));
    }
    assert_eq!(served.log(&["--for", "0.3", "--probability", "0"]), "");
}

#[test]
fn a_log_is_limited_to_a_thread_a_scope_or_a_crate() {
    let served = Served::start("limited");
    for (option, name) in [
        ("--thread", "worker"),
        ("--scope", "request"),
        // The subject's functions are of the crate `log`.
        ("--crate", "log"),
    ] {
        let text = served.log(&["--for", "0.5", option, name]);
        assert!(text.contains("  4,344 bytes  [String]"), "{option} {name}: {text}");
        assert_eq!(served.log(&["--for", "0.1", option, "nothing"]), "", "{option}");
    }
    let pid = served.child.id().to_string();
    assert_eq!(served.log(&["--for", "0.1", "--tid", &pid]), "", "the main thread waits");
}

#[test]
fn a_log_longer_than_the_ring_allows_is_refused() {
    let served = Served::start("long");
    let most = dmd::observe::MAX_LOG_LENGTH;
    let begin = |length: usize| {
        let request = Request::new("log").with("do", "begin").with("length", length.to_string());
        served.connection().ask(&request).map(|_| ()).map_err(|error| error.to_string())
    };
    begin(most).expect("as long as a log may be");
    let refused = begin(most + 1).expect_err("longer");
    assert!(refused.ends_with("a log has at most 32768 entries; 32769 are too many"), "{refused}");

    let longer = (most + 1).to_string();
    let words = ["about-memory", "log", &served.socket, "--length", &longer];
    let refused = Cli::try_parse_from(words).expect_err("longer").to_string();
    assert!(refused.contains("32769 is not in 0..=32768"), "{refused}");
}

#[test]
fn who_asks_no_more_is_taken_to_have_gone() {
    let served = Served::start("gone");
    let begin = Request::new("log").with("do", "begin");
    let begun = served.connection().ask(&begin).expect("it begins");
    let begun: serde_json::Value = serde_json::from_slice(&begun[0].bytes).expect("JSON");
    assert_eq!(served.tracking(), "off, but for single allocations, which are observed");
    let end = Instant::now() + Duration::from_secs(20);
    while served.tracking() != "off: new blocks are not tracked" {
        assert!(Instant::now() < end, "{}", served.tracking());
        std::thread::sleep(Duration::from_millis(100));
    }
    let take = Request::new("log").with("do", "take").with("number", begun["number"].to_string());
    let refused = served.connection().ask(&take).map(|_| ()).expect_err("it has no log any more");
    assert!(refused.to_string().contains("begin anew"), "{refused}");
    for (name, value) in [("probability", "2"), ("probability", "x"), ("do", "nothing")] {
        let bad = Request::new("log").with("do", "begin").with(name, value);
        served.connection().ask(&bad).map(|_| ()).expect_err(value);
    }
}

#[test]
fn the_log_of_a_program_that_ends_is_printed_up_to_its_end() {
    let mut served = Served::start("ends");
    let input = served.child.stdin.take();
    let ender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        drop(input);
    });
    let words = ["about-memory", "log", &served.socket, "--follow"];
    let cli = Cli::try_parse_from(words).expect("words that are known");
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    cli.run(&mut Context::new(&mut out, &mut notes)).expect("its end is no error");
    ender.join().expect("it does not panic");
    assert!(String::from_utf8_lossy(&out).contains("  4,344 bytes  [String]"));
    assert_eq!(String::from_utf8_lossy(&notes), "note: the program has ended\n");
}
