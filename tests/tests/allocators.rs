//! Tests every operation of every inner allocator, with DMD asleep and awake.

use std::process::Command;

/// Asleep, and awake with each kind of table.
const MODES: [Option<&str>; 6] = [
    None,
    Some("--stacks=none"),
    Some("--stacks=full"),
    Some("--mode=cumulative"),
    Some("--mode=scan"),
    Some("--stacks=partial"),
];

fn exercise(program: &str) {
    exercise_as(program, &MODES);
}

fn exercise_as(program: &str, modes: &[Option<&str>]) {
    for mode in modes {
        let mut command = Command::new(program);
        command.env_remove("DMD").envs(mode.map(|mode| ("DMD", mode)));
        let ended = command.output().expect("cargo has built it");
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{program} with {mode:?}: {} {message}", ended.status);
    }
}

#[test]
fn the_books_agree_on_the_systems_allocator() {
    exercise(env!("CARGO_BIN_EXE_allocators-system"));
}

#[test]
fn the_counters_agree_without_dmd() {
    exercise_as(env!("CARGO_BIN_EXE_allocators-counted"), &[None]);
}

#[cfg(feature = "jemalloc")]
#[test]
fn the_books_agree_on_jemalloc() {
    exercise(env!("CARGO_BIN_EXE_allocators-jemalloc"));
}

#[cfg(feature = "mimalloc")]
#[test]
fn the_books_agree_on_mimalloc() {
    exercise(env!("CARGO_BIN_EXE_allocators-mimalloc"));
}

#[cfg(feature = "snmalloc")]
#[test]
fn the_books_agree_on_snmalloc() {
    exercise(env!("CARGO_BIN_EXE_allocators-snmalloc"));
}
