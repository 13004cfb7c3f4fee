//! Tests periodic dumps, requested by the program, its environment, or a client: sorted names,
//! retention, and full disks.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use about_memory::input::live::Connection;
use about_memory::{Cli, Context};
use clap::Parser;

const SERVED: &str = env!("CARGO_BIN_EXE_served");
const MOMENTS: &str = env!("CARGO_BIN_EXE_moments");

fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("memreport-dumps-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Returns the complete files of a folder, in the order of their names.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let is_wanted = |path: &PathBuf| {
        name(path).is_some_and(|name| name.ends_with(ending) && !name.starts_with("incomplete"))
    };
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(is_wanted).collect();
    files.sort();
    files
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a program that serves, and returns it with its socket.
fn start(command: &mut Command, folder: &Path) -> (Child, PathBuf) {
    command.arg(format!("folder={}", folder.display())).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("it prints its socket");
    (child, line.trim().into())
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

/// Has the program allocate 10 MB.
fn grow(child: &mut Child) {
    child.stdin.as_mut().expect("a pipe").write_all(b"+").expect("it reads");
}

fn status(child: &Child, socket: &Path) -> memreport::serve::protocol::Status {
    let program = about_memory::input::live::Program { pid: child.id(), socket: socket.to_owned() };
    Connection::new(program, Duration::from_secs(20)).status().expect("it answers")
}

/// Returns the output of `about-memory heap-diff FOLDER`.
fn heap_diff(folder: &Path) -> String {
    let words = ["about-memory", "heap-diff", &folder.display().to_string()].map(String::from);
    let cli = Cli::try_parse_from(words).expect("right words");
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    cli.run(&mut Context::new(&mut out, &mut notes)).expect("two dumps");
    String::from_utf8(out).expect("text")
}

#[test]
fn a_server_saves_at_intervals_and_the_first_and_last_can_be_compared() {
    let base = folder("server");
    let dumps = base.join("dumps");
    let mut command = Command::new(SERVED);
    command.arg(format!("every={}", dumps.display())).env("DMD", "1");
    let (child, socket) = start(&mut command, &base);
    wait_until("three moments are there", || files(&dumps, ".dmd.json.gz").len() == 3);
    let first = files(&dumps, ".dmd.json.gz")[0].clone();
    wait_until("the oldest goes", || !first.exists());
    assert!(status(&child, &socket).saved[0].ends_with(&format!("saved in {}", dumps.display())));
    end(child);
    assert!(files(&dumps, ".dmd.json.gz").len() <= 4, "the last may be between the two");
    // Files of an ended process are inherited by the next one.
    let left = files(&dumps, ".json.gz");
    let mut command = Command::new(SERVED);
    command.arg(format!("every={}", dumps.display())).env("DMD", "1");
    let (mut child, socket) = start(&mut command, &base);
    wait_until("those of before go", || left.iter().all(|file| !file.exists()));
    wait_until("there are three", || files(&dumps, ".dmd.json.gz").len() >= 3);
    let before = files(&dumps, ".dmd.json.gz")[0].clone();
    let copy = base.join("a.dmd.json.gz");
    std::fs::copy(&before, &copy).expect("it is whole");
    grow(&mut child);
    wait_until("it grows", || status(&child, &socket).heap_allocated > Some(10 << 20));
    let all = files(&dumps, ".dmd.json.gz");
    wait_until("later ones are there", || all.iter().all(|file| !file.exists()));
    let newest = files(&dumps, ".dmd.json.gz").pop().expect("one");
    std::fs::copy(&newest, base.join("b.dmd.json.gz")).expect("it is whole");
    end(child);
    let message = heap_diff(&base);
    assert!(message.lines().any(|line| line.starts_with("+10,4")), "{message}");
    std::fs::remove_dir_all(base).expect("ours");
}

#[test]
fn the_environment_has_any_program_save_at_intervals() {
    let base = folder("environment");
    let dumps = base.join("my dumps");
    let words = format!("every=0.05s most=4 into={}", dumps.display());
    let mut command = Command::new(MOMENTS);
    command.args(["wait", "1"]).env("DMD", "--mode=live").env(dmd::saves::VARIABLE, words);
    assert!(command.status().expect("it starts").success());
    let saved = files(&dumps, ".dmd.json.gz");
    assert!((3..=5).contains(&saved.len()), "{saved:?}");
    for file in &saved {
        let dump = memreport_analysis::read::read_file(file).expect("each is whole");
        let heap = memreport_analysis::heap::Heap::new(
            &dump,
            &memreport_analysis::heap::HeapOptions::default(),
        );
        let accounts = heap.expect("of all blocks").accounts();
        let found = accounts.listed.usable() + i128::from(accounts.untracked.bytes);
        assert_eq!(Some(found), accounts.heap_allocated.map(i128::from), "to the byte");
        assert!(accounts.tracker_bytes > Some(0));
    }
    let bad = Command::new(MOMENTS).env(dmd::saves::VARIABLE, "often").output().expect("it starts");
    assert!(bad.status.success(), "it goes on without");
    let message = String::from_utf8_lossy(&bad.stderr);
    assert!(message.contains("saves nothing: bad entry in $MEMREPORT_SAVE: 'often'"), "{message}");
    std::fs::remove_dir_all(base).expect("ours");
}

/// Limits files to a kilobyte, which to the program is a full disk.
#[test]
fn a_full_disk_is_said_and_harms_nothing() {
    let base = folder("full");
    let dumps = base.join("dumps");
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -f 1; trap '' XFSZ; exec \"$0\" \"$@\"", SERVED]);
    command.arg(format!("every={}", dumps.display())).env("DMD", "1");
    let (child, socket) = start(&mut command, &base);
    let message = || status(&child, &socket).saved.join("; ");
    wait_until("the failure is reported", || message().contains("the last one was not"));
    assert!(
        message().contains("0 reports saved in") && message().contains("File too large"),
        "{}",
        message()
    );
    wait_until("nothing is left", || std::fs::read_dir(&dumps).expect("it was made").count() == 0);
    end(child);
    std::fs::remove_dir_all(base).expect("ours");
}

#[test]
fn from_outside_a_program_is_followed_until_it_ends() {
    let base = folder("outside");
    let mut command = Command::new(SERVED);
    command.env("DMD", "--mode=live");
    let (mut child, socket) = start(&mut command, &base);
    let series = base.join("series");
    std::fs::create_dir(&series).expect("a folder");
    let snapshot = |words: &[&str]| {
        let output = series.join("now.json.gz").display().to_string();
        let socket = socket.display().to_string();
        let fixed = ["about-memory", "snapshot", &socket, "-o", &output, "--dump"];
        let words = fixed.iter().chain(words);
        let cli = Cli::try_parse_from(words).expect("the words are right");
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        cli.run(&mut Context::new(&mut out, &mut notes)).expect("it answers");
        String::from_utf8(notes).expect("text")
    };
    grow(&mut child);
    let notes = snapshot(&["--every", "0.05s", "--count", "4", "--keep", "2"]);
    assert!(notes.contains("what grew: about-memory heap diff "), "{notes}");
    assert_eq!(files(&series, ".dmd.json.gz").len(), 2);
    assert_eq!(files(&series, ".json.gz").len(), 4);
    let following = std::thread::scope(|scope| {
        let following = scope.spawn(|| snapshot(&["--every", "0.05"]));
        wait_until("it is followed", || files(&series, ".dmd.json.gz").len() > 4);
        end(child);
        following.join().expect("it does not panic")
    });
    assert!(following.contains("the program has ended"), "{following}");
    std::fs::remove_dir_all(base).expect("ours");
}
