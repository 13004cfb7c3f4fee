//! Tests that no stack begins with the tracker's own frames, in any mode and with any unwinder.

use std::collections::BTreeSet;
use std::process::Command;

use memreport_analysis::read::{Dump, read_file};
use memreport_analysis::symbols::{Options, Symboliser};

const OWN_FRAMES: &str = env!("CARGO_BIN_EXE_own-frames");

/// Returns whether a function is the tracker's or the compiler's allocator shim.
fn is_own(function: &str) -> bool {
    let shims = ["__rust_alloc", "__rust_realloc", "__rg_", "__rustc::", "GlobalAlloc", "LocalKey"];
    let path = function.trim_start_matches(['<', '&']);
    path.starts_with("dmd::") || shims.iter().any(|shim| path.contains(shim))
}

/// Returns the functions of the tracker in the stacks of a dump, and the number of stacks.
fn own_functions(dump: &Dump) -> (BTreeSet<String>, usize) {
    let stacks: BTreeSet<_> = dump.blocks.iter().filter_map(|block| block.kind.alloc).collect();
    let frames = stacks.iter().flat_map(|stack| dump.trace(*stack));
    let functions = frames.filter_map(|frame| {
        let symbol = dump.frames[frame.index()].symbol.as_ref()?;
        Some(symbol.function.to_string())
    });
    (functions.filter(|function| is_own(function)).collect(), stacks.len())
}

#[test]
fn stacks_of_dumps_are_without_the_trackers_frames() {
    let folder = std::env::temp_dir().join(format!("own-frames-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for words in [
        "--mode=live",
        "--mode=live --unwinder=cfi",
        "--mode=live --unwinder=backtrace",
        "--mode=live --times=yes",
        "--mode=live --stacks=partial",
        "--mode=cumulative",
        "--mode=profile --sample-bytes=1K",
    ] {
        let report = folder.join("report.json");
        let status = Command::new(OWN_FRAMES).arg("dump").arg(&report).env("DMD", words).status();
        assert!(status.expect("it runs").success(), "{words}");
        let mut dump = read_file(&dmd::dump::beside(&report)).expect("a dump");
        Symboliser::new(Options::default()).symbolicate(&mut dump);
        let (own, stacks) = own_functions(&dump);
        assert!(stacks > 0, "{words}: no stacks");
        assert!(own.is_empty(), "{words}: {own:#?}");
    }
    std::fs::remove_dir_all(&folder).expect("it was there");
}

#[test]
fn the_stack_of_an_observed_allocation_begins_with_the_program() {
    let output = Command::new(OWN_FRAMES).arg("observe").env_remove("DMD").output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.lines().count() == 3, "{output:?}");
    assert!(!text.lines().any(|function| function.is_empty() || is_own(function)), "{text}");
}
