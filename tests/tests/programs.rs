//! Tests programs that do what a tracker might not survive.
//!
//! Each ends in the same way as without DMD, and leaves a dump with its planted blocks.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use memreport_analysis::read;
use memreport_analysis::read::Dump;
use object::{Object as _, ObjectSymbol as _, SymbolKind};

const PROGRAMS: &str = env!("CARGO_BIN_EXE_programs");

/// The size of planted blocks.
const SIZE: u64 = 12_347;

/// Awake, with each kind of table.
const MODES: [&str; 5] = [
    "--stacks=none",
    "--stacks=full",
    "--stacks=full --unwinder=cfi",
    "--stacks=partial --mode=cumulative",
    "--mode=scan",
];

/// The timeout after which a program counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A run of a case with one `$DMD`.
struct Run {
    output: Output,
    folder: PathBuf,
}

impl Run {
    /// Runs a case, with its files in a folder of their own.
    fn of(case: &str, mode: Option<&str>, more: &[&Path]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("programs")
            .join(format!("{case}{}", mode.unwrap_or_default().replace(' ', "")));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target folder is ours");
        let mut command = Command::new(PROGRAMS);
        command.arg(case).arg(folder.join("own.json")).args(more).stdin(Stdio::null());
        // Core files of crashed programs would fill the disk, and only the message is compared.
        command.env_remove("DMD").env("RUST_BACKTRACE", "0").current_dir(&folder);
        command.envs(mode.map(|mode| ("DMD", mode)));
        Run { output: finish(command, &folder), folder }
    }

    fn message(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    #[track_caller]
    fn dump(&self, name: &str) -> Dump {
        let path = self.folder.join(name).with_extension("dmd.json");
        read::read_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// Runs a program with a timeout. Its output goes to files beside its folder, so that it never
/// blocks.
fn finish(mut command: Command, folder: &Path) -> Output {
    let streams = ["out", "err"].map(|ending| folder.with_extension(ending));
    let [out, err] = streams.each_ref().map(|path| File::create(path).expect("a place for it"));
    let mut child = command.stdout(out).stderr(err).spawn().expect("cargo has built it");
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        if begin.elapsed() > TIMEOUT {
            child.kill().expect("it runs");
            panic!("it hangs: {command:?}");
        }
        sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = streams.map(|path| std::fs::read(path).expect("it was written"));
    Output { status, stdout, stderr }
}

/// Removes the parts of a message that differ from run to run: numbers of processes and threads.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

fn planted(dump: &Dump) -> u64 {
    let live = dump.blocks.iter().filter(|block| block.req == SIZE && !block.kind.freed);
    live.map(|block| block.num).sum()
}

/// Runs a case asleep and awake. It must end alike, print the same, and dump this many planted
/// blocks.
fn holds(case: &str, blocks: u64, more: &[&Path]) -> Vec<Run> {
    let asleep = Run::of(case, None, more);
    let runs = MODES.map(|mode| Run::of(case, Some(mode), more));
    for (run, mode) in runs.iter().zip(MODES) {
        let context = format!("{case} with {mode}: {}", run.message());
        assert_eq!(run.output.status, asleep.output.status, "{context}");
        assert_eq!(run.output.stdout, asleep.output.stdout, "{context}");
        assert_eq!(
            without_numbers(&run.message()),
            without_numbers(&asleep.message()),
            "{context}"
        );
        let dump = run.dump("own");
        assert_eq!(planted(&dump), blocks, "{context}");
        // A scan tells of threads that run at its moment.
        let others = dump.notes.iter().filter(|note| !note.contains("running: the scan"));
        assert_eq!(others.count(), 0, "{context}: {:?}", dump.notes);
    }
    [asleep].into_iter().chain(runs).collect()
}

#[test]
fn thousands_of_threads_begin_and_end() {
    holds("threads", 3000, &[]);
}

#[test]
fn destructors_of_threads_allocate() {
    holds("destructors", 200, &[]);
}

#[test]
fn hooks_find_the_stack_of_a_thread_without_a_lock() {
    holds("bare-threads", 4, &[]);
}

#[test]
fn threads_have_the_smallest_stacks() {
    holds("small-threads", 4, &[]);
}

/// The C library puts it on the stack of each thread.
#[test]
fn static_thread_local_storage_has_1_kib_at_most() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_workload-dmd")).expect("cargo has built it");
    let program = object::File::parse(&*program).expect("a program");
    let is_ours = |name: &str| ["dmd", "memreport"].iter().any(|own| name.contains(own));
    let variables = program.symbols().filter(|symbol| symbol.kind() == SymbolKind::Tls);
    let own = variables.filter(|symbol| symbol.name().is_ok_and(is_ours));
    let bytes: u64 = own.map(|symbol| symbol.size()).sum();
    assert!((8..=1024).contains(&bytes), "{bytes}");
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn a_forked_child_goes_on_and_knows_its_blocks() {
    for case in ["fork", "fork-busy"] {
        for run in &holds(case, 5 + 3, &[])[1..] {
            assert_eq!(planted(&run.dump("child")), 5 + 4, "{case}");
        }
    }
}

#[test]
fn another_program_in_the_same_process_begins_anew() {
    holds("exec", 10, &[]);
}

#[test]
fn programs_end_where_they_want() {
    for (case, code) in [("exit-nested", 42), ("exit-thread", 43)] {
        let runs = holds(case, 6, &[]);
        assert!(runs.iter().all(|run| run.output.status.code() == Some(code)), "{case}");
    }
}

#[test]
fn the_dump_from_before_an_abort_is_whole() {
    let runs = holds("abort", 6, &[]);
    assert_eq!(runs[0].output.status.signal(), Some(libc::SIGABRT));
}

#[test]
fn a_program_that_asks_for_no_dump_leaves_none() {
    for mode in MODES {
        let run = Run::of("no-dump", Some(mode), &[]);
        assert!(run.output.status.success());
        assert_eq!((run.message().as_str(), run.output.stdout.len()), ("", 0));
        let left = std::fs::read_dir(&run.folder).expect("it is there").count();
        assert_eq!(left, 0);
    }
}

#[test]
fn panics_unwind_and_are_caught() {
    let runs = holds("panic", 6, &[]);
    assert_eq!(runs[0].output.status.code(), Some(101));
    assert!(runs[0].message().contains("with 6 blocks"), "{}", runs[0].message());
    holds("catch", 6, &[]);
    holds("panic-thread", 6, &[]);
}

#[test]
fn signals_come_in_the_middle_of_hooks() {
    holds("signals", 6, &[]);
}

#[test]
fn a_stack_that_no_thread_was_born_with() {
    holds("own-stack", 6, &[]);
}

#[test]
fn a_sandbox_without_the_system_call_for_other_stacks_hurts_nothing() {
    holds("sandbox", 6, &[]);
    holds("sandbox-kills", 6, &[]);
}

#[test]
fn a_stack_that_overflows_kills_as_ever() {
    for (case, whose) in [("overflow", "main"), ("overflow-thread", "deep")] {
        let runs = holds(case, 6, &[]);
        assert_eq!(runs[0].output.status.signal(), Some(libc::SIGABRT));
        let message = runs[0].message();
        assert!(message.contains(whose) && message.contains("overflowed its stack"), "{message}");
    }
}

#[test]
fn ten_thousand_frames_are_cut_and_that_is_said() {
    let runs = holds("deep", 6, &[]);
    let dump = runs[2].dump("own");
    let block = dump.blocks.iter().find(|block| block.req == SIZE).expect("it was planted");
    let frames = dump.trace(block.kind.alloc.expect("it has a stack"));
    assert!((100..10_000).contains(&frames.len()), "{} frames", frames.len());
    let text = std::fs::read_to_string(runs[2].folder.join("own.dmd.json")).expect("it was read");
    let dump: serde_json::Value = serde_json::from_str(&text).expect("it was read");
    let cut = dump["memreport"]["truncatedStacks"].as_u64().expect("a number");
    assert!(cut > 0, "{cut} stacks are reported as cut");
}

#[test]
fn programs_that_close_their_streams_or_print_much() {
    holds("closed-streams", 10, &[]);
    holds("long-stream", 10, &[]);
}

#[test]
fn a_plugin_is_loaded_and_unloaded() {
    let plugin = built("memreport-plugin-plain");
    for run in &holds("plugin", 20, &[&plugin])[1..] {
        assert!(run.output.status.success(), "{}", run.message());
    }
}

#[test]
fn a_plugin_takes_a_snapshot_while_it_is_loaded() {
    let plugin = built("memreport-plugin-plain");
    for run in &holds("snapshot-at-load", 10, &[&plugin])[1..] {
        assert!(run.output.status.success(), "{}", run.message());
    }
}

#[test]
fn of_two_trackers_in_a_process_one_sleeps_and_says_so_once() {
    let plugin = built("memreport-plugin-second-tracker");
    for mode in MODES {
        let run = Run::of("second-tracker", Some(mode), &[&plugin]);
        assert!(run.output.status.success(), "{}", run.message());
        let lines: Vec<String> = run.message().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("is in this process more than once"), "{lines:?}");
        assert!(lines[0].contains("memreport_plugin_second_tracker"), "{lines:?}");
        assert_eq!(planted(&run.dump("own")), 1);
    }
    let asleep = Run::of("second-tracker", None, &[&plugin]);
    assert_eq!((asleep.message().as_str(), asleep.output.status.success()), ("", true));
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn a_plugin_with_a_tracker_tracks_where_it_is_alone_and_threads_may_outlive_its_use() {
    let plugin = built("memreport-plugin-second-tracker");
    for (mode, awake) in [(Some("--stacks=full"), "1\n"), (None, "0\n")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plugin-host"));
        command.arg(&plugin).env_remove("DMD").envs(mode.map(|mode| ("DMD", mode)));
        let output = command.output().expect("cargo has built it");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {message}", output.status);
        assert_eq!((message.as_ref(), output.stdout.as_slice()), ("", awake.as_bytes()));
    }
}

/// Builds a library to load at run time, which cargo does not build for tests by itself.
fn built(package: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--message-format=json", "--package", package]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let name = package.replace('-', "_");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|line| line["target"]["name"] == *name)
        .find_map(|line| line["filenames"][0].as_str().map(PathBuf::from))
        .expect("cargo prints the path")
}
