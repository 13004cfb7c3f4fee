//! Runs the examples as programs of their own, since each declares an allocator.
//!
//! Cargo builds the examples together with the tests, into the folder `examples` beside theirs. The
//! example `budget_test` is a test binary itself, so Cargo runs it.

use std::path::PathBuf;
use std::process::Command;

/// Runs an example, and returns the text that it prints.
fn printed(example: &str) -> String {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("tests are in a folder of the profile");
    let program: PathBuf = profile.join("examples").join(example);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    let mut command = Command::new(&program);
    command.env_remove("DMD").env("TMPDIR", env!("CARGO_TARGET_TMPDIR"));
    let output = command.output().unwrap_or_else(|error| {
        panic!("{}: {error}; build it with `cargo build --examples`", program.display())
    });
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("examples print UTF-8")
}

#[test]
fn dark_matter() {
    let text = printed("dark_matter");
    // 100 vectors of 1000 numbers, and the vector of these.
    let unreported = text.lines().find_map(|line| line.strip_prefix("unreported: "));
    let bytes: usize = unreported.unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((400_000..600_000).contains(&bytes), "{text}");
    assert!(text.contains("about-memory heap records --explain "), "{text}");
}

#[test]
#[cfg(feature = "pprof")]
fn service() {
    let text = printed("service");
    assert!(text.contains("/debug/pprof/heap"), "{text}");
    assert!(text.contains("service::answer"), "{text}");
}
