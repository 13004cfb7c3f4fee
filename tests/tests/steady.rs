//! Tests the memory of a profile in a program whose heap is steady.

use std::process::Command;

/// Runs the subject, whose heap has 20 MB. Returns the bytes of the tracker's tables at the start
/// and at the end.
fn tables(allocations: &str, variable: &str) -> (i64, i64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    let output = command.args(["20", allocations, "1"]).env("DMD", variable).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let tables = |line: &str| line.split(' ').nth(1).and_then(|bytes| bytes.parse().ok());
    let figures: Vec<i64> = text.lines().filter_map(tables).collect();
    let [first, last] = figures[..] else { panic!("{text}") };
    (first, last)
}

#[test]
fn a_profile_of_a_steady_heap_does_not_grow() {
    // 400,000 blocks are 1,600 samples, of which 40 live. Each had a page of 4 KiB once.
    let (first, last) = tables("400000", "--mode=profile");
    assert!(first > 0 && last < 2_000_000, "{first} {last}");
    assert!(last - first < 100_000, "{first} {last}");
}

#[test]
fn more_samples_than_the_compact_table_holds_are_in_the_tree() {
    // 20,000 samples live, in 20 leaves of the tree.
    let (first, last) = tables("20000", "--mode=profile --sample-bytes=1024");
    assert!(first > 4_000_000 && last < 12_000_000, "{first} {last}");
}
