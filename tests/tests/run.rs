//! Tests `about-memory run`: programs under DMD from start to end, with every kind of exit.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use about_memory::Context;
use about_memory::args::{Cli, Command as Wanted};
use about_memory::command::launch::LaunchCommand;
use about_memory::command::launch::run::{self, RunArgs};
use clap::Parser;
use flate2::read::GzDecoder;
use memreport_analysis::read::read_file;
use memreport_analysis::symbols::Symboliser;

use crate::executable::install;

const MOMENTS: &str = env!("CARGO_BIN_EXE_moments");

/// Parses the arguments of `about-memory run`.
fn args(words: &[&str]) -> RunArgs {
    let words = ["about-memory", "run"].iter().chain(words);
    match Cli::try_parse_from(words).expect("the words are right").command {
        Some(Wanted::Launch(LaunchCommand::Run(args))) => args,
        other => panic!("{other:?}"),
    }
}

/// Returns the printed report, the notes, and the exit code.
fn run(words: &[&str]) -> (String, String, u8) {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let done = args(words).run(&mut Context::new(&mut out, &mut notes));
    let done = done.unwrap_or_else(|error| panic!("{error}"));
    let code = (0..=u8::MAX).find(|code| done == ExitCode::from(*code)).expect("it is a byte");
    (String::from_utf8(out).expect("text"), String::from_utf8(notes).expect("text"), code)
}

fn refusal(words: &[&str]) -> String {
    run::run(&args(words)).expect_err("it must not run").to_string()
}

#[track_caller]
fn assert_has(text: &str, wanted: &str) {
    assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
}

#[test]
fn the_snapshot_that_the_program_asks_for_is_shown() {
    let (out, notes, code) = run(&["--", MOMENTS, "save"]);
    assert_has(&out, "after the work was done, ");
    assert_has(&out, "(one of 2 snapshots)");
    assert_has(&out, "── moments/kept");
    assert_has(&out, "heap-unclassified");
    assert_has(&out, "moments::forgotten");
    assert_eq!((notes.as_str(), code), ("", 0));
}

#[test]
fn a_program_that_asks_for_nothing_is_seen_at_exit_only_and_that_is_said() {
    let (out, _, code) = run(&["--", MOMENTS, "return"]);
    assert_has(&out, "at exit, ");
    assert_has(&out, "Only the state at exit was seen");
    assert_eq!(code, 0);
}

#[test]
fn snapshots_at_intervals_see_what_is_gone_at_exit() {
    // On a busy machine, too, the second interval ends after the program.
    let (out, _, code) = run(&["--every", "2", "--", MOMENTS, "wait", "3"]);
    assert_has(&out, "at an interval, ");
    assert_has(&out, "moments::forgotten");
    assert_eq!(code, 0);
}

#[test]
fn near_the_peak_is_near_the_peak() {
    let (out, notes, code) = run(&["--at-peak", "--verbose", "--", MOMENTS, "peak"]);
    assert_has(&out, "near the peak, with ");
    let bytes: u64 = out
        .split_once("near the peak, with ")
        .and_then(|(_, rest)| rest.split_once(" bytes"))
        .expect("a number")
        .0
        .parse()
        .expect("a number");
    assert!(bytes > 30_000_000, "the program holds 32 MB at its peak, and {bytes} bytes were seen");
    assert_has(&notes, "the most that was ever allocated is ");
    assert_eq!(code, 0);
}

/// The snapshot at exit would replace it, and the tree would have another size than the label.
#[test]
fn of_one_kept_snapshot_the_peak_is_kept_and_named_by_its_size() {
    let words = ["--at-peak", "--keep", "1", "--verbose", "--", MOMENTS, "peak"];
    let (out, _, code) = run(&words);
    let after = |text: &str, words: &str| {
        let rest = text.split_once(words).unwrap_or_else(|| panic!("no `{words}` in:\n{text}")).1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().expect("a number")
    };
    assert_eq!(code, 0);
    assert_has(&out, "(the only snapshot)");
    let label = after(&out, "near the peak, with ");
    let tree = out.lines().find(|line| line.ends_with(" ── heap-allocated"));
    let tree = tree.expect("a line").trim_start().split(' ').next().expect("a number");
    assert_eq!(tree.replace(',', "").parse(), Ok(label), "{out}");
    // The exact peak is at least what the snapshot shows, with the blocks of that moment.
    let peak = after(&out, "s after the start, with ");
    assert!(peak > 32_000_000, "{peak}");
    assert_has(&out, "What lived at the peak");
    assert_has(out.split_once("What lived at the peak").expect("see above").1, "moments::peak");
}

#[test]
fn a_signal_is_answered_by_a_snapshot_and_then_obeyed() {
    let (out, notes, code) = run(&["--", MOMENTS, "terminate"]);
    assert_has(&out, "on SIGTERM, ");
    assert_has(&out, "moments::forgotten");
    assert_has(&notes, "the program was ended by signal 15");
    assert_eq!(code, 128 + 15);
}

#[test]
fn a_bad_end_is_said_and_its_exit_code_handed_on() {
    let (_, notes, code) = run(&["--", MOMENTS, "fail"]);
    assert_has(&notes, "the program ended with exit code 7");
    assert_eq!(code, 7);

    let (out, notes, code) = run(&["--", MOMENTS, "abort"]);
    assert_eq!((out.as_str(), code), ("", 128 + 6));
    assert_has(&notes, "the program left no snapshot: signal 6 (SIGABRT) ended it");
    assert_has(&notes, "the program was ended by signal 6");
}

#[test]
fn starting_another_program_adds_no_snapshot() {
    let (out, notes, code) = run(&["--", MOMENTS, "start"]);
    assert_has(&out, "after the work was done, ");
    assert_has(&out, "(one of 2 snapshots)");
    assert_eq!((notes.as_str(), code), ("", 0));
}

#[test]
fn the_limit_is_kept_or_the_exit_code_is_1() {
    let (_, notes, code) = run(&["--fail-above", "100", "--", MOMENTS, "save"]);
    assert_eq!((notes.as_str(), code), ("", 0));
    let (_, notes, code) = run(&["--fail-above", "5", "--", MOMENTS, "save"]);
    assert_has(&notes, " of the heap is unclassified, and at most 5 % may be");
    assert_eq!(code, 1);
    let (_, notes, code) = run(&["--fail-above", "5", "--", MOMENTS, "abort"]);
    assert_has(&notes, "nothing was measured, so nothing is within the limit");
    assert_eq!(code, 128 + 6);
}

#[test]
fn the_files_are_kept_where_the_user_wants_them() {
    let folder = Scratch::new("kept");
    let folder_name = folder.0.join("deep/er");
    run(&["--output", folder_name.to_str().expect("text"), "--", MOMENTS, "save"]);
    let mut names: Vec<_> = std::fs::read_dir(&folder_name)
        .expect("made")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    assert_eq!(names.len(), 4, "two snapshots and two dumps: {names:?}");
}

#[test]
fn what_takes_the_snapshot_is_not_in_it() {
    let folder = Scratch::new("taker");
    let output = folder.0.to_str().expect("text");
    run(&["--output", output, "--every", "0.05s", "--", MOMENTS, "return"]);
    let files = std::fs::read_dir(&folder.0).expect("made").flatten().map(|entry| entry.path());
    let dumps: Vec<_> = files.filter(|file| file.to_string_lossy().contains(".dmd.")).collect();
    assert!(!dumps.is_empty());
    for dump in dumps {
        let mut dump = read_file(&dump).expect("a dump");
        Symboliser::default().symbolicate(&mut dump);
        for frame in &dump.frames {
            assert!(!frame.text.contains("dmd::control"), "{}", frame.text);
        }
    }
}

/// Reads a file, gzipped or not.
fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("it is there");
    let mut text = String::new();
    let read = match path.extension() {
        Some(ending) if ending == "gz" => GzDecoder::new(&bytes[..]).read_to_string(&mut text),
        _ => (&bytes[..]).read_to_string(&mut text),
    };
    read.expect("text");
    text
}

#[test]
fn private_words_are_left_out_of_all_snapshots_on_request() {
    for (words, wanted, unwanted) in [
        (&["--"][..], "private-word", "<anonymized>"),
        (&["--anonymize", "--"], "<anonymized>", "private-word"),
    ] {
        let folder = Scratch::new("anonymized");
        let output = folder.0.to_str().expect("text");
        run(&[&["--output", output], words, &[MOMENTS, "save"]].concat());
        let files = std::fs::read_dir(&folder.0).expect("made").flatten();
        let texts: Vec<_> = files.map(|file| text(&file.path())).collect();
        let reports = texts.iter().filter(|text| text.contains("visited/"));
        assert_eq!(reports.filter(|text| text.contains(wanted)).count(), 2, "{words:?}");
        assert!(!texts.iter().any(|text| text.contains(unwanted)), "{words:?}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_with_the_remedy() {
    let folder = Scratch::new("refused");
    let text = folder.file("text", b"text\n", 0o755);
    let plain = folder.file("plain", b"#!/bin/sh\n", 0o644);
    let table = [
        ("no-such-program-here", "no-such-program-here: no such program, here or in $PATH"),
        ("./no/such", "./no/such: no such program, here or in $PATH"),
        (
            text.to_str().expect("text"),
            "not a program but a file that starts one; name the program, or say --wrapper",
        ),
        (plain.to_str().expect("text"), "cannot be started: "),
        (folder.0.to_str().expect("text"), "is a directory"),
    ];
    for (program, wanted) in table {
        assert_has(&refusal(&["--", program]), wanted);
    }
}

#[test]
fn a_wrapper_is_followed_to_the_program_that_it_starts() {
    let folder = Scratch::new("wrapper");
    let script = folder.file("start", format!("#!/bin/sh\n{MOMENTS} save\n").as_bytes(), 0o755);
    let (out, _, code) = run(&["--wrapper", "--", script.to_str().expect("text")]);
    assert_has(&out, "after the work was done, ");
    assert_eq!(code, 0);
    let idle = folder.file("idle", b"#!/bin/sh\ntrue\n", 0o755);
    let (_, notes, _) = run(&["--wrapper", "--", idle.to_str().expect("text")]);
    assert_has(&notes, "no process with DMD was seen");
}

#[test]
fn a_bad_word_in_the_variable_stops_the_program_at_once() {
    let ended = Command::new(MOMENTS)
        .arg("save")
        .env("DMD", "--mode=nonsense")
        .output()
        .expect("it starts");
    assert_eq!(ended.status.code(), Some(1));
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_has(&text, "Bad entry in the $DMD environment variable: '--mode=nonsense'");
    assert_eq!(ended.stdout, b"");
}

#[test]
fn statistics_are_shown_if_the_variable_asks_for_them() {
    let ended = Command::new(MOMENTS)
        .arg("save")
        .env("DMD", "--stacks=none --show-dump-stats=yes")
        .output()
        .expect("it starts");
    assert!(ended.status.success());
    assert_has(&String::from_utf8_lossy(&ended.stderr), " groups, ");
}

#[test]
fn without_anybody_to_ask_a_program_runs_as_ever() {
    let ended = Command::new(MOMENTS)
        .arg("return")
        .env("DMD", "1")
        .env("MEMREPORT_RUN", "/no/such/folder")
        .output()
        .expect("it starts");
    assert!(ended.status.success());
    assert_eq!((ended.stdout, ended.stderr), (Vec::new(), Vec::new()));
}

/// A folder that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("memreport-tests-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a place for files");
        Scratch(path)
    }

    fn file(&self, name: &str, text: &[u8], mode: u32) -> PathBuf {
        let (path, text_alone) = (self.0.join(name), self.0.join("text-alone"));
        std::fs::write(&text_alone, text).expect("written");
        install(&text_alone, &path, mode);
        std::fs::remove_file(text_alone).expect("its own file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
