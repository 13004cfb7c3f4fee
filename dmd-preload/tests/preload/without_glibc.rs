//! Programs over musl and programs of Go: every command refuses them with the reason, before they
//! start or while they run, and they go on.

use std::path::{Path, PathBuf};

use crate::attach::{Running, states};
use crate::dumps::about_memory;
use crate::subject::{Scratch, compile_by, installed};

/// Asserts that each way to track or inspect a program is refused: before it starts for one reason,
/// while it runs for another.
#[track_caller]
fn assert_refused(program: &Path, at_start: &str, running: &str) {
    let name = program.to_str().expect("text");
    for words in [&["run"][..], &["run", "--c-heap"], &["run", "--children"], &["record"]] {
        let error = about_memory(&[words, &["--", name]].concat()).expect_err("it must not run");
        assert!(error.contains(at_start), "{words:?}: {error}");
    }
    let mut process = Running::start(program, &[]);
    for command in ["attach", "inspect"] {
        let error = about_memory(&[command, &process.pid()]).expect_err("it has no glibc");
        assert!(error.contains(running), "{command}: {error}");
        assert!(!states(&process.pid()).contains(['T', 't']));
        process.tell("it goes on");
    }
    process.end();
}

fn musl(scratch: &Scratch, name: &str, options: &[&str]) -> Option<PathBuf> {
    compile_by("musl-gcc", scratch, "lines.c", name, options)
}

#[test]
fn a_program_over_musl() {
    let scratch = Scratch::new("musl");
    let Some(program) = musl(&scratch, "dynamic", &[]) else { return };
    // musl-gcc may name a linker that is not there.
    if !starts(&program) {
        return println!("not run: musl's dynamic linker is not installed");
    }
    assert_refused(&program, "its C library is musl", "its C library is musl");
}

fn starts(program: &Path) -> bool {
    let mut command = std::process::Command::new(program);
    command.stdin(std::process::Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn a_static_program_over_musl() {
    let scratch = Scratch::new("musl-static");
    let Some(program) = musl(&scratch, "static", &["-static"]) else { return };
    assert_refused(&program, "is statically linked", "it is statically linked");
}

#[test]
fn a_static_program_of_go() {
    const SOURCE: &str = "package main\nimport (\"bufio\"; \"fmt\"; \"os\")\nvar kept [][]byte\nfunc main() {\n\
                          for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {\n\
                          kept = append(kept, make([]byte, 10000))\nfmt.Println(\"done\")\n}\n}\n";
    let scratch = Scratch::new("go");
    let Some(go) = installed("go") else { return };
    let source = scratch.join("main.go");
    std::fs::write(&source, SOURCE).expect("a file");
    for (name, flags) in [("program", ""), ("stripped", "-s -w")] {
        let program = scratch.join(name);
        let mut build = std::process::Command::new(&go);
        build.args(["build", "-ldflags", flags, "-o"]).args([&program, &source]);
        build.env("CGO_ENABLED", "0").env("GOCACHE", scratch.join("cache")).env("GOFLAGS", "");
        if !build.status().is_ok_and(|status| status.success()) {
            return println!("not run: go cannot build a program");
        }
        assert_refused(&program, "it is a program of Go", "it is a program of Go");
    }
}
