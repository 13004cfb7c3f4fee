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

/// Runs a program in these modes, and in the first two also with a query for each size, as if what
/// is computed differed from the allocator's answers.
fn exercise_as(program: &str, modes: &[Option<&str>]) {
    let computed = modes.iter().map(|mode| (mode, None));
    let queried = modes.iter().take(2).map(|mode| (mode, Some("1")));
    for (mode, unprepared) in computed.chain(queried) {
        let mut command = Command::new(program);
        command.env_remove("DMD").envs(mode.map(|mode| ("DMD", mode)));
        command.env_remove("UNPREPARED").envs(unprepared.map(|value| ("UNPREPARED", value)));
        let ended = command.output().expect("cargo has built it");
        let message = String::from_utf8_lossy(&ended.stderr);
        let run = format!("{program} with {mode:?}, {unprepared:?}");
        assert!(ended.status.success(), "{run}: {} {message}", ended.status);
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

#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
mod beside_glibc {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use about_memory::{Cli, Context};
    use clap::Parser;

    /// Returns what `about-memory inspect` prints about a running program.
    fn inspected(program: &str) -> String {
        let mut command = Command::new(program);
        // It lives as long as its output is read.
        command.args(["1", "1000000", "1000"]).env_remove("DMD").stdout(Stdio::piped());
        let mut child = command.spawn().expect("cargo has built it");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut String::new()).expect("text");
        let cli = Cli::try_parse_from(["about-memory", "inspect", &child.id().to_string()]);
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let ended = cli.expect("a command").run(&mut Context::new(&mut out, &mut notes));
        child.kill().expect("it runs");
        child.wait().expect("it was started here");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(ended.is_ok(), "{}", text(&notes));
        text(&out) + &text(&notes)
    }

    #[test]
    fn inspect_says_which_blocks_are_not_here() {
        let note = "the program's own blocks are jemalloc's, which are not here";
        let over_jemalloc = inspected(env!("CARGO_BIN_EXE_steady-jemalloc"));
        assert!(over_jemalloc.contains(note), "{over_jemalloc}");
        let over_the_systems = inspected(env!("CARGO_BIN_EXE_steady"));
        assert!(!over_the_systems.contains("not here"), "{over_the_systems}");
    }
}
