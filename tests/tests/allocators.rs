//! Tests every operation of every inner allocator, with DMD asleep and awake.

use std::process::Command;

#[cfg(all(feature = "jemalloc", target_os = "linux", target_arch = "x86_64"))]
use about_memory::{Cli, Context};
#[cfg(all(feature = "jemalloc", target_os = "linux", target_arch = "x86_64"))]
use clap::Parser;

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

#[cfg(all(feature = "jemalloc", target_os = "linux", target_arch = "x86_64"))]
#[test]
fn inspect_names_the_commands_that_save_the_blocks_of_jemalloc() {
    // Far more work than it takes to look at it.
    let mut program = Command::new(env!("CARGO_BIN_EXE_workload-dmd-jemalloc"))
        .args(["churn", "1000000000", "1"])
        .env_remove("DMD")
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("cargo has built it");
    let pid = program.id().to_string();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let cli = Cli::parse_from(["about-memory", "inspect", &pid]);
    let failure = cli.run(&mut Context::new(&mut out, &mut err)).err();
    program.kill().expect("it runs");
    program.wait().expect("it was killed");
    // It is a note beside the few blocks of C, or the error if there are none.
    let words = failure.map_or_else(|| String::from_utf8_lossy(&err).into(), |why| why.to_string());
    for part in ["jemalloc", &*format!("about-memory track {pid} --mode=scan"), " --dump "] {
        assert!(words.contains(part), "{words}");
    }
}
