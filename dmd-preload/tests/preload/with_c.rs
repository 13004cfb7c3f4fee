//! Rust and C in one process: a program that declares DMD, with a library of C.

pub(crate) mod service;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dumps::{about_memory, bytes_by_stack, dump_in};
use crate::subject::{STATES, Scratch, With, command, compile, output};

const WITH_C: &str = env!("CARGO_BIN_EXE_with-c");

/// Without caches, glibc's own sums contain live blocks only.
const NO_CACHES: &str = "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0";

/// The usable bytes of the block that the library leaks: 1,234,567 and what glibc rounds up.
const LEAKED: u64 = 1_234_568;

pub(crate) fn library_of_c(scratch: &Scratch) -> Option<PathBuf> {
    compile(scratch, "c_library.c", "libkeeping.so", &["-shared", "-fPIC"])
}

/// Runs the program, and returns its numbers by name.
fn numbers(library: &Path, with: With) -> BTreeMap<String, Vec<u64>> {
    let mut program = command(WITH_C, with);
    program.arg(library).env("GLIBC_TUNABLES", NO_CACHES);
    let done = output(program);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && done.stderr.is_empty(), "{text}{done:?}");
    let line = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        (name, words.filter_map(|word| word.parse().ok()).collect())
    };
    text.lines().map(line).collect()
}

#[test]
fn each_block_is_known_once_in_every_state() {
    let scratch = Scratch::new("with-c");
    let Some(library) = library_of_c(&scratch) else { return };
    for state in STATES {
        let found = numbers(&library, With::Library(state));
        let [bytes, blocks] = found["c-library"][..] else { panic!("{found:?}") };
        assert_eq!(found["tracker"], [bytes, blocks], "{state}");
        // Each block has a word before it.
        assert_eq!(found["glibc"], [bytes + 8 * blocks], "{state}");
        assert_eq!(found["rust"][0], found["rust"][1], "{state}");
        assert_eq!(found["freed"], [0, 0], "{state}");
        match state {
            "" => assert!(!found.contains_key("reported")),
            // A profile has a sample of C's blocks.
            _ if state.contains("profile") => assert_eq!(found["reported"][0], 0),
            _ => {
                // The dynamic linker and Rust's standard library have a few blocks of C.
                let [of_c, heap] = found["reported"][..] else { panic!("{found:?}") };
                assert!((bytes..bytes + 10_000).contains(&of_c), "{state}: {found:?}");
                assert!(found["unclassified"][0] < 4000, "{state}: {found:?}");
                assert!(heap > of_c, "{state}: {found:?}");
            }
        }
    }
}

#[test]
fn without_the_library_blocks_of_c_are_unknown() {
    let scratch = Scratch::new("without-c");
    let Some(library) = library_of_c(&scratch) else { return };
    let found = numbers(&library, With::Nothing);
    assert_eq!(found["tracker"], [0, 0]);
    assert!(found["glibc"][0] > 3_000_000);
}

#[test]
fn reports_and_stacks_name_the_function_and_the_library_of_c() {
    let scratch = Scratch::new("c-heap");
    let Some(library) = library_of_c(&scratch) else { return };
    let folder = scratch.join("saved");
    let words = ["run", "--c-heap", "-o", folder.to_str().expect("text"), "--", WITH_C];
    let words = words.into_iter().chain([library.to_str().expect("text")]);
    let (out, notes) = about_memory(&words.collect::<Vec<_>>()).expect("it runs");
    for part in ["-- c-heap\n", "-- libkeeping.so\n", "── c_fill\n", "── c_leak\n"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!notes.contains("has no DMD"), "{notes}");
    let stacks = bytes_by_stack(&dump_in(&folder));
    let bytes = |end: &str| -> u64 {
        stacks.iter().filter(|(stack, _)| stack.ends_with(end)).map(|(_, bytes)| bytes).sum()
    };
    assert_eq!(bytes("with_c::main;with_c::leak_from_rust;c_leak"), LEAKED, "{stacks:#?}");
    // The C library's function counts for its caller in reports, and is in the stack.
    assert!(
        stacks.keys().any(|stack| stack.contains("c_fill;copied;") && stack.ends_with("strdup")),
        "{stacks:#?}"
    );
    assert!(!stacks.keys().any(|stack| stack.contains("dmd_preload")), "{stacks:#?}");
    let dump = dump_in(&folder);
    let dump = dump.to_str().expect("text");
    let words = ["heap", dump, "--by", "stack", "--in", "leak_from_rust", "--min", "0"];
    let (heap, _) = about_memory(&words).expect("a dump");
    let lines: Vec<&str> = heap.lines().filter(|line| line.contains('ƒ')).collect();
    let [caller, callee] = lines[..] else { panic!("{heap}") };
    assert!(caller.ends_with("ƒ with_c::leak_from_rust"), "{heap}");
    assert!(callee.ends_with("ƒ c_leak (libkeeping.so)"), "{heap}");
}

#[test]
fn a_program_that_cannot_load_the_library_is_refused() {
    let scratch = Scratch::new("c-heap-static");
    let Some(program) = compile(&scratch, "known.c", "known", &["-static"]) else { return };
    let program = program.to_str().expect("text");
    let error = about_memory(&["run", "--c-heap", "--", program]).expect_err("it is static");
    assert!(error.contains("static"), "{error}");
}
