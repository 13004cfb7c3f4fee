//! Runs each example as a program of its own, since each declares an allocator.
//!
//! Cargo builds the examples of the package together with its tests, into the folder `examples`
//! beside the tests' own.

use std::path::PathBuf;
use std::process::Command;

/// Runs an example, and returns the text that it prints.
fn printed(example: &str) -> String {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("tests are in a folder of the profile");
    let program: PathBuf = profile.join("examples").join(example);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    let output = Command::new(&program).output().unwrap_or_else(|error| {
        panic!("{}: {error}; build it with `cargo build --examples`", program.display())
    });
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("examples print UTF-8")
}

#[test]
fn measure() {
    let text = printed("measure");
    assert!(text.contains("Of these, text has "), "{text}");
}

#[test]
fn reporters() {
    let text = printed("reporters");
    for path in ["explicit/cache", "explicit/sessions/1", "explicit/textures", "cached-pages"] {
        assert!(text.contains(path), "{path} in:\n{text}");
    }
}
