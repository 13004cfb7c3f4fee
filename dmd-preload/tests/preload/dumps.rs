//! Dumps and recordings of the library.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use about_memory::{Cli, Context};
use clap::Parser;

use crate::subject::{Scratch, With, command, compile, installed, output};

/// Runs a command of `about-memory` in this process. Returns its output and its notes.
pub(crate) fn about_memory(words: &[&str]) -> Result<(String, String), String> {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let words = ["about-memory"].iter().chain(words);
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let done = cli.run(&mut Context::new(&mut out, &mut notes));
    done.map_err(|error| error.to_string())?;
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ok((text(out), text(notes)))
}

/// Returns the only dump in a folder.
pub(crate) fn dump_in(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder).expect("a folder").flatten().map(|file| file.path());
    let is_dump = |path: &PathBuf| path.to_string_lossy().contains(".dmd.json");
    let mut dumps: Vec<_> = files.filter(is_dump).collect();
    assert_eq!(dumps.len(), 1, "{dumps:?}");
    dumps.remove(0)
}

/// Returns the bytes of each stack, the outermost function first.
pub(crate) fn bytes_by_stack(dump: &Path) -> BTreeMap<String, u64> {
    let dump = dump.to_str().expect("text");
    let (folded, _) = about_memory(&["export", "--to", "folded", dump]).expect("a dump");
    let line = |line: &str| {
        let (stack, bytes) = line.rsplit_once(' ').expect("a stack and its bytes");
        (stack.to_owned(), bytes.parse().expect("a number"))
    };
    folded.lines().map(line).collect()
}

#[test]
fn every_byte_of_a_known_heap_is_tracked_and_no_other() {
    check_known(&[]);
}

#[test]
fn programs_without_position_independence_are_tracked() {
    check_known(&["-no-pie", "-fno-pie"]);
}

#[track_caller]
fn check_known(options: &[&str]) {
    let scratch = Scratch::new(&format!("known{}", options.len()));
    let Some(program) = compile(&scratch, "known.c", "known", options) else { return };
    let folder = scratch.join("saved");
    let printed = scratch.join("printed");
    // Without caches, glibc's own sums contain live blocks only.
    let script = format!(
        "GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0 exec {} > {}",
        program.display(),
        printed.display()
    );
    let folder_name = folder.to_str().expect("text");
    let (out, notes) =
        about_memory(&["run", "-o", folder_name, "--", "/bin/sh", "-c", &script]).expect("it runs");
    assert!(notes.contains("has no DMD: a preloaded library tracked its malloc"), "{notes}");
    assert!(out.contains("at exit"), "{out}");
    let printed = std::fs::read_to_string(printed).expect("the program has printed");
    let numbers: Vec<u64> =
        printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [blocks, bytes, grown] = numbers[..] else { panic!("{printed}") };
    // Each block has a word before it; a block that is a mapping has two.
    assert_eq!(grown, bytes + 8 * blocks + 8, "{printed}");
    let stacks = bytes_by_stack(&dump_in(&folder));
    let of_program = stacks.iter().filter(|(stack, _)| stack.contains("main;fill"));
    let tracked: u64 = of_program.map(|(_, bytes)| *bytes).sum();
    assert_eq!(tracked, bytes, "{stacks:#?}");
    let chain = stacks.keys().find(|stack| stack.ends_with("main;fill;middle;innermost"));
    assert!(chain.is_some(), "stacks lead to the function that calls malloc: {stacks:#?}");
    assert!(!stacks.keys().any(|stack| stack.contains("dmd_preload")), "{stacks:#?}");
}

#[test]
fn a_program_with_a_malloc_of_its_own_runs_untracked_and_says_so() {
    let scratch = Scratch::new("own");
    let Some(program) = compile(&scratch, "own.c", "own", &[]) else { return };
    let with = |state| output(command(&program, With::Library(state)));
    let (asleep, awake) = (with(""), with("1"));
    for done in [&asleep, &awake] {
        assert_eq!((&done.stdout[..], done.status.code()), (&b"its own\n"[..], Some(4)));
    }
    assert!(asleep.stderr.is_empty());
    let note = String::from_utf8_lossy(&awake.stderr).into_owned();
    let wanted = format!("tracks nothing: the program calls the malloc of {}", program.display());
    assert!(note.contains(&wanted), "{note}");
}

#[test]
fn the_c_heap_is_not_counted_twice() {
    let (out, _) = about_memory(&["run", "--", "/bin/ls", "/"]).expect("it runs");
    assert!(!out.contains("c-heap"), "{out}");
    assert!(out.contains("heap-allocated"), "{out}");
    assert!(!out.contains("other-code"), "every block is the library's: {out}");
}

#[test]
fn the_walk_is_the_trackers_own() {
    let scratch = Scratch::new("unwinder");
    let Some(program) = compile(&scratch, "known.c", "known", &[]) else { return };
    let folder = scratch.join("saved");
    let words =
        ["run", "-o", folder.to_str().expect("text"), "--", program.to_str().expect("text")];
    about_memory(&words).expect("it runs");
    let text = std::fs::read_to_string(dump_in(&folder)).expect("a dump");
    assert!(text.contains("\"unwinder\":\"call frame information\""), "not the reference unwinder");
}

#[test]
fn a_recording_has_the_blocks_of_c() {
    let scratch = Scratch::new("recording");
    let Some(program) = compile(&scratch, "known.c", "known", &[]) else { return };
    let file = scratch.join("known.rec.gz");
    let words =
        ["record", "-o", file.to_str().expect("text"), "--", program.to_str().expect("text")];
    let (out, notes) = about_memory(&words).expect("it runs");
    assert!(out.contains("Exactly: ") && out.contains(" allocated in "), "{out}");
    assert!(notes.contains("has no DMD"), "{notes}");
}

/// Only the program itself is tracked, whatever it starts; with `--children` all are.
#[test]
fn children_are_tracked_on_request() {
    let count = |words: &[&str]| {
        let (out, _) = about_memory(words).expect("it runs");
        out.lines().filter(|line| line.starts_with("Snapshot of process ")).count()
    };
    let script = ["--", "/bin/bash", "-c", "ls / > /dev/null; ls / > /dev/null; true"];
    if !Path::new("/bin/bash").exists() {
        return println!("not run: bash is not installed");
    }
    let with = |options: &[&'static str]| -> Vec<&str> {
        ["run"].iter().chain(options).chain(&script).copied().collect()
    };
    assert_eq!(count(&with(&[])), 1);
    assert_eq!(count(&with(&["--children"])), 3);
}

#[test]
fn a_running_program_is_listed_and_asked() {
    let scratch = Scratch::new("served");
    let Some(python) = installed("python3") else { return };
    let mut program = command(python, With::Library("1"));
    let script = "import time; kept = [bytes(100000) for n in range(100)]; time.sleep(60)";
    program.args(["-c", script]).env("PYTHONMALLOC", "malloc");
    let mut child = program.spawn().expect("it starts");
    let pid = child.id().to_string();
    let file = scratch.join("heap.json.gz");
    let words = ["snapshot", &pid, "--dump", "-o", file.to_str().expect("text")];
    let is_filled = || {
        about_memory(&words).ok()?;
        let stacks = bytes_by_stack(&scratch.join("heap.dmd.json.gz"));
        (stacks.values().sum::<u64>() > 10_000_000).then_some(())
    };
    let found = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        is_filled()
    });
    let (listed, _) = about_memory(&["ps"]).expect("it lists");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(found.is_some(), "the bytes objects are in a dump");
    assert!(listed.contains(&pid), "{listed}");
}

/// Programs that run for milliseconds leave nothing behind, however they end.
#[test]
fn short_lived_programs_leave_no_socket() {
    let scratch = Scratch::new("short");
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&scratch.0, private).expect("ours");
    for (end, state) in [("exit 0", "1"), ("kill -KILL $$", "1"), ("exec true", "")] {
        let mut shell = command("/bin/sh", With::Library(state));
        shell.args(["-c", end]).env("XDG_RUNTIME_DIR", &scratch.0);
        output(shell);
    }
    assert_eq!(std::fs::read_dir(&scratch.0).expect("a folder").count(), 0);
}

#[test]
fn a_socket_is_removed_at_exit() {
    let scratch = Scratch::new("socket");
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&scratch.0, private).expect("ours");
    let sockets = || std::fs::read_dir(&scratch.0).expect("a folder").count();
    let Some(bash) = installed("bash") else { return };
    let mut shell = command(bash, With::Library("1"));
    shell.args(["-c", "read line"]).env("XDG_RUNTIME_DIR", &scratch.0);
    let mut child = shell.stdin(Stdio::piped()).spawn().expect("it starts");
    let is_there = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        sockets() == 1
    });
    drop(child.stdin.take());
    child.wait().expect("it ends");
    assert!(is_there && sockets() == 0, "{is_there}, {} at last", sockets());
}

#[test]
fn nobody_else_can_write_the_library() {
    let library = crate::subject::library();
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(library), 0o600);
    assert_eq!(mode(library.parent().expect("a folder")), 0o700);
}

/// The library is not there any more when the program starts others.
#[test]
fn the_library_is_removed_after_the_run() {
    let before = leftovers();
    about_memory(&["run", "--", "/bin/sh", "-c", "exit 0"]).expect("it runs");
    let output = Command::new("sh").args(["-c", "true"]).output().expect("it starts");
    assert!(output.stderr.is_empty());
    // Other tests' runs have libraries meanwhile, which go; one that was forgotten stays.
    let new: Vec<PathBuf> = leftovers().difference(&before).cloned().collect();
    let are_gone = (0..300).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        !new.iter().any(|folder| folder.exists())
    });
    assert!(are_gone, "{new:?}");
}

/// Returns the libraries of this process's runs that lie in the folder for temporary files.
fn leftovers() -> std::collections::BTreeSet<PathBuf> {
    let files = std::fs::read_dir(std::env::temp_dir()).expect("a folder").flatten();
    let own = crate::subject::library().parent().map(Path::to_owned);
    files
        .map(|file| file.path())
        .filter(|path| path.join("libdmd_preload.so").exists() && Some(path) != own.as_ref())
        .collect()
}
