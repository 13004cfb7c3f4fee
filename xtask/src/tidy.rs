//! Rules that no tool checks, as tests.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::build::root;

/// The files that may hold `unsafe`, and nothing else may.
const UNSAFE: &[&str] = &[
    "dmd/src/run.rs",
    "dmd/src/track/blocks.rs",
    "dmd/src/track/copies.rs",
    "dmd/src/track/hooks.rs",
    "dmd/src/track/pages.rs",
    "dmd/src/track/scan.rs",
    "dmd/src/track/signals.rs",
    "dmd/src/track/start.rs",
    "dmd/src/track/sync.rs",
    "dmd/src/track/sys.rs",
    "dmd/src/track/walk/modules.rs",
    "dmd/src/track/walk/reference.rs",
    "dmd/src/track/walk/registers.rs",
    "dmd/src/track/walk/unwind_info/tests.rs",
    "dmd/tests/proof.rs",
    "memreport/src/allocator/counters.rs",
    "memreport/src/allocator/declaration.rs",
    "memreport/src/allocator/jemalloc.rs",
    "memreport/src/allocator/loaded.rs",
    "memreport/src/allocator/mimalloc.rs",
    "memreport/src/allocator/system/chunk.rs",
    "memreport/src/allocator/system/glibc.rs",
    "memreport/src/allocator/system.rs",
    "memreport/src/allocator/usable_size.rs",
    "memreport/src/allocator/words.rs",
    "memreport/src/event/scope.rs",
    "memreport/src/impls/bitvec.rs",
    "memreport/src/impls/boxed.rs",
    "memreport/src/impls/bumpalo.rs",
    "memreport/src/impls/channel.rs",
    "memreport/src/impls/compact_str.rs",
    "memreport/src/impls/crossbeam_channel.rs",
    "memreport/src/impls/dashmap.rs",
    "memreport/src/impls/hashbrown_0_14.rs",
    "memreport/src/impls/io.rs",
    "memreport/src/impls/lock_api.rs",
    "memreport/src/impls/once_cell.rs",
    "memreport/src/impls/petgraph.rs",
    "memreport/src/impls/roaring.rs",
    "memreport/src/impls/secrecy.rs",
    "memreport/src/impls/sequence.rs",
    "memreport/src/impls/shared.rs",
    "memreport/src/impls/smallvec.rs",
    "memreport/src/impls/text.rs",
    "memreport/src/impls/tokio.rs",
    "memreport/src/impls/tokio_channels.rs",
    "memreport/src/impls/url.rs",
    "memreport/src/measure/bridge.rs",
    "memreport/src/measure/guard.rs",
    "memreport/src/measure/ops/find.rs",
    "memreport/src/measure/ops/prefetch.rs",
    "memreport/src/measure/ops/queue.rs",
    "memreport/src/measure/ops.rs",
    "memreport/src/measure/size_of.rs",
    "memreport/src/process/figures.rs",
    "memreport/src/report/counted_heap.rs",
    "memreport/src/serve/sys.rs",
    "memreport/tests/derive.rs",
    "memreport/tests/sizes.rs",
    "tests/plugins/plain/src/lib.rs",
    "tests/plugins/second-tracker/src/lib.rs",
    "tests/src/bin/fulltext/faults.rs",
    "tests/src/bin/growth/mapping.rs",
    "tests/src/bin/programs/forks.rs",
    "tests/src/bin/programs/interrupts.rs",
    "tests/src/bin/programs/library.rs",
    "tests/src/bin/programs/stacks.rs",
    "tests/src/bin/programs/streams.rs",
    "tests/src/bin/recorded.rs",
    "tests/src/bin/served.rs",
    "tests/src/bin/stacks/foreign.rs",
    "tests/src/bin/stacks/plugin.rs",
    "tests/src/exercise.rs",
    "tests/tests/calibrated.rs",
    "tests/workload/src/processor.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with(".git") && !path.ends_with("ui") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn all() -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(root(), &mut found);
    found.sort();
    let read = |path: PathBuf| {
        let name =
            path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("source is text"))
    };
    found.into_iter().map(read).collect()
}

#[test]
fn every_file_says_first_what_it_is() {
    let silent: Vec<_> = all()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(silent, [""; 0]);
}

/// Whether the file lifts the workspace's ban, on however many lines.
fn has_unsafe(text: &str) -> bool {
    text.split_whitespace().collect::<String>().contains("expect(unsafe_code")
}

#[test]
fn the_list_of_files_with_unsafe_is_known() {
    let with_unsafe: Vec<_> = all()
        .into_iter()
        .filter(|(name, text)| !name.starts_with("xtask/") && has_unsafe(text))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(with_unsafe, UNSAFE);
}

#[test]
fn no_drawers() {
    let drawers = ["util", "utils", "common", "helpers", "manager", "misc"];
    let found: Vec<_> = all()
        .into_iter()
        .filter(|(name, _)| {
            Path::new(name)
                .file_stem()
                .is_some_and(|stem| drawers.iter().any(|drawer| stem == *drawer))
        })
        .collect();
    assert!(found.is_empty(), "{:?}", found.iter().map(|(name, _)| name).collect::<Vec<_>>());
}
