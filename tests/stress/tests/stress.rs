//! Tests the table of live blocks under load from several threads. `cargo xtask stress` does the
//! same for longer.

use std::process::Command;

#[test]
fn every_lasting_block_is_in_every_dump_once() {
    let modes = [
        ("--stacks=none", ""),
        ("--stacks=full", ""),
        ("--stacks=partial", ""),
        ("--mode=cumulative", ""),
        ("--stacks=full", "toggle"),
    ];
    for (variable, toggle) in modes {
        let mut subject = Command::new(env!("CARGO_BIN_EXE_stress"));
        let output = subject.env("DMD", variable).args(["0.5", toggle]).output();
        let output = output.expect("cargo has built it");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variable} {toggle}: {message}");
    }
}

/// Mallocs that are preloaded in the place of the C library's: their smallest chunks have 8 or 16
/// bytes, the C library's 32.
const PRELOADED: [(&str, &str); 3] = [
    ("libjemalloc.so.2", "libjemalloc2"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("libmimalloc.so.2", "libmimalloc2.0"),
];

#[test]
fn blocks_of_a_preloaded_malloc_are_all_in_the_table() {
    for (library, package) in PRELOADED {
        // The loader only warns about a library that it does not find.
        let run = |variable: &str| {
            let mut subject = Command::new(env!("CARGO_BIN_EXE_stress"));
            subject.env("LD_PRELOAD", library).env("DMD", variable).arg("0.3");
            subject.output().expect("cargo has built it")
        };
        for variable in ["--stacks=none", "--stacks=full"] {
            let output = run(variable);
            let message = String::from_utf8_lossy(&output.stderr);
            if message.contains("cannot be preloaded") {
                eprintln!("not run: {library}: it is not installed (Debian: {package})");
                break;
            }
            assert!(output.status.success(), "{library} {variable}: {message}");
        }
    }
}

#[test]
fn the_table_equals_a_locked_map_at_every_pause() {
    for variable in ["--stacks=none", "--stacks=full", "--mode=cumulative", "--times=yes"] {
        let mut subject = Command::new(env!("CARGO_BIN_EXE_hooks"));
        let output = subject.env("DMD", variable).args(["0.5", "7"]).output();
        let output = output.expect("cargo has built it");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variable}: {message}");
    }
}
