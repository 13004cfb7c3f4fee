//! Tests which blocks of a running program count as leaked, in programs with known leaks.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use about_memory::{Cli, Context};
use clap::Parser;

/// Returns the leaked blocks and their usable bytes: as planted, and as `tree PID` finds them.
fn planted_and_found(words: &[&str]) -> ((u64, u64), (u64, u64)) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_leaks"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cargo has built it");
    let mut line = String::new();
    let out = program.stdout.take().expect("it has a pipe");
    BufReader::new(out).read_line(&mut line).expect("it prints a line");
    let planted: Vec<u64> =
        line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [blocks, _, usable] = planted[..] else { panic!("{line}") };
    // Until it waits, registers and its stack change.
    std::thread::sleep(std::time::Duration::from_millis(50));

    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let pid = program.id().to_string();
    let cli = Cli::try_parse_from(["about-memory", "tree", &pid, "--json"]).expect("right words");
    let done = cli.run(&mut Context::new(&mut out, &mut notes));
    drop(program.stdin.take());
    assert!(program.wait().expect("it ends").success());
    done.unwrap_or_else(|error| panic!("{error}"));
    let tree: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let rows = tree["rows"].as_array().expect("rows").iter();
    let leaked: Vec<_> = rows.filter(|row| row["is"] == "leaked").collect();
    let bytes = leaked.iter().filter_map(|row| row["bytes"].as_u64()).sum();
    ((blocks, usable), (leaked.iter().map(|row| blocks_of(row)).sum(), bytes))
}

/// Returns the blocks of a row and of all rows below it.
fn blocks_of(row: &serde_json::Value) -> u64 {
    let below = row["children"].as_array().into_iter().flatten().map(blocks_of);
    row["blocks"].as_u64().unwrap_or(0) + below.sum::<u64>()
}

#[test]
fn leaked_blocks_are_found_to_the_byte() {
    // On the stack of a program that is not optimised, an old word may lead to a leaked structure,
    // which is then held by the stack.
    let mut exact = 0;
    for seed in 1..=12 {
        let (planted, found) = planted_and_found(&[&seed.to_string()]);
        assert!(planted.0 > 0, "seed {seed}");
        assert!(found.0 <= planted.0 && found.1 <= planted.1, "{found:?} of {planted:?}");
        exact += u32::from(found == planted);
    }
    assert!(exact >= 9, "{exact} of 12");
}

#[test]
fn nothing_is_leaked_in_programs_without_leaks() {
    for seed in 1..=12 {
        let (planted, found) = planted_and_found(&[&seed.to_string(), "none"]);
        assert_eq!((planted, found), ((0, 0), (0, 0)), "seed {seed}");
    }
}
