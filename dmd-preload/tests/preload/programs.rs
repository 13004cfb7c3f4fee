//! Programs of the system: their output and exit status are the same with the library.

use std::process::Command;

use crate::subject::{Scratch, With, assert_same, command, compile, installed};

const STATES: [&str; 2] = ["", "1"];

/// Compares runs of an installed program.
#[track_caller]
fn check(name: &str, arguments: &[&str]) {
    check_with(name, arguments, &|_| {});
}

#[track_caller]
fn check_with(name: &str, arguments: &[&str], prepare: &dyn Fn(&mut Command)) {
    let Some(program) = installed(name) else { return };
    let run = |with| {
        let mut program = command(&program, with);
        program.args(arguments).env("LC_ALL", "C").env_remove("RUST_LOG");
        prepare(&mut program);
        program
    };
    assert_same(run, &STATES);
}

#[test]
fn python_with_sqlite() {
    const SCRIPT: &str = r#"
import sqlite3, subprocess, sys, threading
base = sqlite3.connect(":memory:")
base.execute("create table rows (number integer, text text)")
base.executemany("insert into rows values (?, ?)", ((n, "row %d" % n) for n in range(20000)))
print(base.execute("select sum(number), max(text) from rows").fetchall())
threads = [threading.Thread(target=lambda: [str(n) * 9 for n in range(20000)]) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True).stdout)
sys.exit(7)
"#;
    for malloc in ["malloc", "pymalloc"] {
        check_with("python3", &["-c", SCRIPT], &|python| {
            python.env("PYTHONMALLOC", malloc);
        });
    }
}

#[test]
fn perl_and_awk() {
    check(
        "perl",
        &[
            "-e",
            "my %h; $h{$_ % 977} .= chr(65 + $_ % 26) for 1..50000; print join(',', map { length } @h{1..9}), qq(\n); exit 3",
        ],
    );
    check(
        "awk",
        &["BEGIN { for (i = 0; i < 50000; i++) a[i % 1000] = a[i % 1000] i; print length(a[7]) }"],
    );
}

#[test]
fn bash_that_runs_a_thousand_commands() {
    check(
        "bash",
        &[
            "-c",
            "for ((n = 0; n < 1000; n++)); do x=$(/bin/echo $n); done; echo $x; trap 'echo trapped' TERM; kill -TERM $$; exit 5",
        ],
    );
    check("sh", &["-c", "seq 3000 | sort -r | uniq | wc -l"]);
}

#[test]
fn ls_and_sort() {
    check("ls", &["-lR", "/etc"]);
    check("ls", &["/no/such/folder"]);
    let scratch = Scratch::new("sort");
    let lines: String =
        (0_u32..200_000).map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761))).collect();
    std::fs::write(scratch.join("lines"), lines).expect("a file");
    let file = scratch.join("lines");
    check("sort", &["--parallel=4", file.to_str().expect("text")]);
}

#[test]
fn git() {
    let scratch = Scratch::new("git");
    let folder = scratch.0.to_str().expect("text");
    let Some(git) = installed("git") else { return };
    let prepare = |with| {
        let _ = std::fs::remove_dir_all(scratch.join(".git"));
        let script = format!(
            "cd {folder} && {git} init -q . && echo text > file && {git} add file && {git} -c user.name=a -c user.email=b commit -qm one && \
             {git} log --format=%s --stat && {git} gc -q && {git} fsck",
            git = git.display()
        );
        let mut shell = command("sh", with);
        shell.args(["-c", &script]);
        shell.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
        shell
    };
    assert_same(prepare, &STATES);
}

#[test]
fn compilers() {
    let scratch = Scratch::new("compilers");
    check("cargo", &["--version"]);
    if compile(&scratch, "known.c", "known", &[]).is_some() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/subjects/words.cpp");
        check("c++", &["-O2", "-S", "-o", "-", source]);
    }
    let source = scratch.join("small.rs");
    std::fs::write(&source, "pub fn f(n: u32) -> String { format!(\"{n}\") }").expect("a file");
    let out = scratch.join("small.rlib");
    let paths = [&source, &out].map(|path| path.to_str().expect("text"));
    check("rustc", &["--crate-type=rlib", paths[0], "-o", paths[1], "-Adead_code"]);
}

#[test]
fn signals_stay_as_they_are() {
    // The status of a default action, and of a program that ignores it.
    check("sh", &["-c", "kill -INT $$; echo not ended"]);
    check("sh", &["-c", "trap '' INT; kill -INT $$; echo ignored"]);
    check(
        "python3",
        &[
            "-c",
            "import signal; print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))",
        ],
    );
}

#[test]
fn files_have_the_numbers_that_programs_expect() {
    check("python3", &["-c", "print(open('/etc/passwd').fileno(), open('/etc/group').fileno())"]);
    // It closes what it does not know.
    let run = |with: With| {
        let mut shell = command("sh", with);
        shell
            .args(["-c", "exec 3>&- 4>&- 5>&- 6>&-; exec 3</etc/passwd; ls /proc/$$/fd | head -4"]);
        shell
    };
    assert_same(run, &STATES);
}
