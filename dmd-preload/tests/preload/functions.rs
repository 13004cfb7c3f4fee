//! The functions of C beside glibc's own.

use std::process::Command;

use crate::subject::{STATES, Scratch, With, assert_same, command, compile, library, output};

#[test]
fn every_function_does_what_glibcs_does() {
    let scratch = Scratch::new("functions");
    let Some(program) = compile(&scratch, "functions.c", "functions", &[]) else { return };
    assert_same(|with| command(&program, with), &STATES);
    let printed = output(command(&program, With::Library("1")));
    assert!(printed.stdout.split(|byte| *byte == b'\n').count() > 900, "the table is there");
}

#[test]
fn operators_of_cpp_work() {
    let scratch = Scratch::new("words");
    let Some(program) = compile(&scratch, "words.cpp", "words", &[]) else { return };
    assert_same(|with| command(&program, with), &STATES);
}

/// Another malloc, preloaded after the library, serves the blocks.
#[test]
fn another_malloc_below_is_called() {
    let found = ["jemalloc.so.2", "mimalloc.so.2", "tcmalloc_minimal.so.4", "tcmalloc.so.4"]
        .map(|name| format!("/usr/lib/{}-linux-gnu/lib{name}", std::env::consts::ARCH))
        .into_iter()
        .filter(|path| std::path::Path::new(path).exists());
    let scratch = Scratch::new("other");
    let Some(lives) = compile(&scratch, "lives.c", "lives", &[]) else { return };
    let Some(words) = compile(&scratch, "words.cpp", "words", &[]) else { return };
    let mut is_run = false;
    for other in found {
        is_run = true;
        let of = |program: &mut Command, with| {
            let libraries = match with {
                With::Nothing => other.clone().into(),
                With::Library(_) => {
                    let mut all = library().as_os_str().to_owned();
                    all.push(":");
                    all.push(&other);
                    all
                }
            };
            program.env("LD_PRELOAD", libraries);
        };
        for what in ["threads", "forks"] {
            let program = |with| {
                let mut program = command(&lives, with);
                of(program.arg(what), with);
                program
            };
            assert_same(program, &["", "1"]);
        }
        let program = |with| {
            let mut program = command(&words, with);
            of(&mut program, with);
            program
        };
        assert_same(program, &["", "1"]);
    }
    if !is_run {
        println!(
            "not run: no other malloc is installed (libjemalloc2, libmimalloc2.0, libtcmalloc-minimal4)"
        );
    }
}
