//! Programs with much memory, which go on while a child of theirs is copied.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::attach::{Running, states, usable};
use crate::dumps::about_memory;
use crate::killed::is_killed;
use crate::subject::{Scratch, compile, installed};

/// Returns the numbers of a process's children, also of ended ones.
fn children(pid: &str) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    tasks.filter_map(of).collect()
}

/// Returns the number before these words in the first line.
#[track_caller]
fn bytes(text: &str) -> u64 {
    let line = text.lines().next().unwrap_or_default();
    let number = line.split(" bytes in ").next().and_then(|start| start.split(": ").nth(1));
    let digits: String = number.unwrap_or_default().replace(',', "");
    digits.parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn the_program_goes_on_and_nothing_of_the_child_is_left() {
    let scratch = Scratch::new("inspect-copied");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let mut running = Running::start(&program, &["churn=2", "wait=1", "parent"]);
    running.tell("keep 100000 500");
    let kept = 100_000 * usable(500);
    for _ in 0..30 {
        let (text, notes) = about_memory(&["inspect", &running.pid()]).expect("it runs");
        assert!(text.contains(" bytes copied from a child)"), "{text}");
        assert_eq!(notes, "", "the copy is of one instant");
        // At most 256 blocks of each thread, and some of the C library.
        assert!((kept..kept + 5_000_000).contains(&bytes(&text)), "{text}");
        assert_eq!(children(&running.pid()), "");
        assert!(!states(&running.pid()).contains(['t', 'T']));
    }
    // The heap is no longer big: it is copied while the program is stopped.
    running.tell("drop");
    running.end();
}

#[test]
fn a_program_with_a_filter_makes_no_child() {
    let scratch = Scratch::new("inspect-filtered");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let mut running = Running::start(&program, &["filter"]);
    running.tell("keep 100000 500");
    let (text, _) = about_memory(&["inspect", &running.pid()]).expect("it runs");
    assert!(text.contains(", to copy "), "{text}");
    assert!(bytes(&text) >= 100_000 * usable(500), "{text}");
    running.end();
}

/// In a container, a program is often the first process, which gets all orphans.
#[test]
fn the_first_process_of_a_container_gets_no_orphan() {
    let Some(unshare) = installed("unshare") else {
        return println!("not run: unshare is missing");
    };
    let scratch = Scratch::new("inspect-first");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let mut command = Command::new(unshare);
    command.args(["--pid", "--fork", "--kill-child"]).arg(&program).arg("parent");
    let mut outer = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = outer.stdin.take().expect("a pipe");
    let mut output = BufReader::new(outer.stdout.take().expect("a pipe"));
    writeln!(input, "keep 100000 500").expect("it reads");
    let mut answer = String::new();
    output.read_line(&mut answer).expect("a pipe");
    if answer != "done\n" {
        outer.wait().expect("it ends");
        return println!("not run: unshare makes no namespace here");
    }
    let inner = children(&outer.id().to_string());
    let inner = inner.trim();
    for _ in 0..5 {
        let (text, _) = about_memory(&["inspect", inner]).expect("it runs");
        assert!(text.contains(" bytes copied from a child)"), "{text}");
        assert_eq!(children(inner), "");
    }
    drop(input);
    assert!(outer.wait().expect("it ends").success());
}

/// Returns whether a process has ended, or does so soon.
fn ends(pid: &str) -> bool {
    let runs = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    };
    let end = Instant::now() + Duration::from_secs(5);
    while runs() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    !runs()
}

/// `inspect` that is killed in the midst of a copy does not end the program: a thread that was
/// borrowed goes on by itself, and the child ends. The kernel keeps a line of it until the program
/// ends, which the program does not find.
#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn a_copy_that_is_killed_leaves_the_program_alone() {
    let scratch = Scratch::new("inspect-killed");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let mut running = Running::start(&program, &["churn=2", "wait=1", "parent"]);
    running.tell("keep 300000 500");
    let mut killed = 0;
    for wait in (0..240).step_by(4) {
        let words = ["inspect", &running.pid()];
        killed += u32::from(is_killed(&words, Duration::from_millis(wait)));
        assert!(!states(&running.pid()).contains(['t', 'T']), "after {wait} ms");
        for child in children(&running.pid()).split_whitespace() {
            assert!(ends(child), "after {wait} ms");
        }
    }
    assert!(killed > 0, "none was killed");
    running.end();
}
