//! Threads, processes and libraries that begin and end while the library tracks.

use std::path::PathBuf;

use crate::subject::{STATES, Scratch, assert_same, command, compile};

#[track_caller]
fn check(what: &str, states: &[&'static str]) {
    let scratch = Scratch::new(what);
    let Some(program) = compile(&scratch, "lives.c", "lives", &["-ldl"]) else { return };
    let run = |with| {
        let mut program = command(&program, with);
        program.arg(what);
        program
    };
    assert_same(run, states);
}

#[test]
fn threads_begin_and_end() {
    check("threads", &STATES);
}

#[test]
fn threads_may_have_the_smallest_stacks() {
    check("small", &STATES);
    check("smallest", &STATES);
}

#[test]
fn forked_children_go_on_beside_threads() {
    check("forks", &STATES);
}

#[test]
fn a_vforked_child_leaves_the_parent_intact() {
    check("vforks", &["", "1", "--mode=cumulative"]);
}

#[test]
fn programs_are_spawned() {
    check("spawns", &["", "1"]);
}

/// Each library has a thread-local, so the linker's tables of running threads grow, and they grow
/// by `malloc`.
#[test]
fn libraries_with_thread_locals_are_loaded_beside_threads() {
    let scratch = Scratch::new("libraries");
    let Some(program) = compile(&scratch, "lives.c", "lives", &["-ldl"]) else { return };
    let library =
        |number| compile(&scratch, "library.c", &format!("{number}.so"), &["-shared", "-fPIC"]);
    let Some(libraries) = (0..40).map(library).collect::<Option<Vec<PathBuf>>>() else { return };
    let run = |with| {
        let mut program = command(&program, with);
        program.arg("libraries").args(&libraries);
        program
    };
    assert_same(run, &STATES);
}
