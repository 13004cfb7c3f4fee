//! The files that may hold `unsafe`.

use std::collections::BTreeSet;

use super::files::Workspace;
use super::outcome::Outcome;
use super::tokens::{Kind, tokens};

/// The files that may hold `unsafe`, sorted. No other file outside `xtask` may.
const UNSAFE: &[&str] = &[
    "about-memory/src/other_process/running/held_signals.rs",
    "about-memory/src/other_process/running/trace.rs",
    "dmd-preload/src/attach.rs",
    "dmd-preload/src/bin/service-with-c.rs",
    "dmd-preload/src/bin/with-c.rs",
    "dmd-preload/src/counters.rs",
    "dmd-preload/src/declare.rs",
    "dmd-preload/src/exit.rs",
    "dmd-preload/src/exports.rs",
    "dmd-preload/src/functions.rs",
    "dmd-preload/src/next.rs",
    "dmd-preload/src/next/choose.rs",
    "dmd-preload/src/next/chunk.rs",
    "dmd-preload/src/program.rs",
    "dmd-preload/src/slots.rs",
    "dmd/src/collect/scan/fork.rs",
    "dmd/src/control/late_server.rs",
    "dmd/src/control/run.rs",
    "dmd/src/hook/allocator.rs",
    "dmd/src/hook/c_functions.rs",
    "dmd/src/hook/c_heap.rs",
    "dmd/src/hook/free.rs",
    "dmd/src/hook/own_frames.rs",
    "dmd/src/hook/preloaded.rs",
    "dmd/src/mem/lazy_slice.rs",
    "dmd/src/mem/pages.rs",
    "dmd/src/mem/signals.rs",
    "dmd/src/mem/single_instance.rs",
    "dmd/src/mem/sync.rs",
    "dmd/src/mem/sys/environment.rs",
    "dmd/src/mem/sys/errno.rs",
    "dmd/src/mem/sys/futex.rs",
    "dmd/src/mem/sys/linux.rs",
    "dmd/src/mem/sys/linux/modules.rs",
    "dmd/src/mem/sys/linux/process.rs",
    "dmd/src/mem/sys/linux/threads.rs",
    "dmd/src/mem/sys/linux/unwind_tables.rs",
    "dmd/src/mem/sys/macos.rs",
    "dmd/src/mem/sys/macos/images.rs",
    "dmd/src/mem/sys/macos/kernel.rs",
    "dmd/src/mem/sys/macos/threads.rs",
    "dmd/src/mem/sys/memory.rs",
    "dmd/src/mem/sys/modules.rs",
    "dmd/src/mem/sys/system.rs",
    "dmd/src/mem/sys/ticks.rs",
    "dmd/src/mem/sys/words.rs",
    "dmd/src/stack/last_stacks.rs",
    "dmd/src/stack/models.rs",
    "dmd/src/stack/thread_slots.rs",
    "dmd/src/stack/walk/last.rs",
    "dmd/src/stack/walk/memory.rs",
    "dmd/src/stack/walk/modules.rs",
    "dmd/src/stack/walk/reference.rs",
    "dmd/src/stack/walk/registers.rs",
    "dmd/src/stack/walk/unwind_info/tests.rs",
    "dmd/src/table/blocks/leaf.rs",
    "dmd/src/table/planted.rs",
    "dmd/tests/locked.rs",
    "dmd/tests/merged.rs",
    "dmd/tests/proof.rs",
    "dmd/tests/resized.rs",
    "examples/c-library/src/main.rs",
    "memreport/src/allocator/counters.rs",
    "memreport/src/allocator/declaration.rs",
    "memreport/src/allocator/inner/jemalloc.rs",
    "memreport/src/allocator/inner/mimalloc.rs",
    "memreport/src/allocator/inner/size_class.rs",
    "memreport/src/allocator/inner/snmalloc.rs",
    "memreport/src/allocator/loaded.rs",
    "memreport/src/allocator/system.rs",
    "memreport/src/allocator/system/chunk.rs",
    "memreport/src/allocator/system/glibc.rs",
    "memreport/src/allocator/thread_end.rs",
    "memreport/src/allocator/usable_size.rs",
    "memreport/src/event/attribution.rs",
    "memreport/src/event/scope.rs",
    "memreport/src/impls/bitvec.rs",
    "memreport/src/impls/boxed.rs",
    "memreport/src/impls/bumpalo.rs",
    "memreport/src/impls/bytes.rs",
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
    "memreport/src/measure/ops.rs",
    "memreport/src/measure/ops/by_words.rs",
    "memreport/src/measure/ops/by_words/shared_memory.rs",
    "memreport/src/measure/ops/find.rs",
    "memreport/src/measure/ops/pending.rs",
    "memreport/src/measure/ops/pending/at_once.rs",
    "memreport/src/measure/ops/queue.rs",
    "memreport/src/measure/this.rs",
    "memreport/src/measure/traversal.rs",
    "memreport/src/process/environment.rs",
    "memreport/src/process/figures.rs",
    "memreport/src/process/task.rs",
    "memreport/src/report/c_api.rs",
    "memreport/src/report/counted_heap.rs",
    "memreport/src/report/counted_malloc.rs",
    "memreport/src/serve/sys.rs",
    "memreport/src/snapshot/descriptor.rs",
    "memreport/src/thread.rs",
    "memreport/src/tracker/prefetch.rs",
    "memreport/src/tracker/words.rs",
    "memreport/tests/collections.rs",
    "memreport/tests/sizes.rs",
    "memreport/tests/this.rs",
    "tests/plugins/jumping-clock/src/lib.rs",
    "tests/plugins/plain/src/lib.rs",
    "tests/plugins/second-tracker/src/lib.rs",
    "tests/src/bin/exhausted.rs",
    "tests/src/bin/fulltext/faults.rs",
    "tests/src/bin/growth/mapping.rs",
    "tests/src/bin/leaks.rs",
    "tests/src/bin/owned.rs",
    "tests/src/bin/parsed.rs",
    "tests/src/bin/peaking.rs",
    "tests/src/bin/programs/forks.rs",
    "tests/src/bin/programs/interrupts.rs",
    "tests/src/bin/programs/library.rs",
    "tests/src/bin/programs/plugins.rs",
    "tests/src/bin/programs/sandbox.rs",
    "tests/src/bin/programs/stacks.rs",
    "tests/src/bin/programs/streams.rs",
    "tests/src/bin/programs/threads.rs",
    "tests/src/bin/recorded.rs",
    "tests/src/bin/served.rs",
    "tests/src/bin/stacks/foreign.rs",
    "tests/src/bin/stacks/plugin.rs",
    "tests/src/exercise.rs",
    "tests/stress/src/bin/hooks.rs",
    "tests/tests/calibrated.rs",
    "tests/workload/src/processor.rs",
];

/// Checks that the files which lift the workspace's ban on `unsafe` are the listed ones.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    compare(workspace, UNSAFE)
}

fn compare(workspace: &Workspace, listed: &[&str]) -> Outcome {
    let sources = workspace.sources.iter();
    let found: BTreeSet<&str> = sources
        .filter(|source| !source.path.starts_with("xtask/") && lifts_ban(&source.text))
        .map(|source| source.path.as_str())
        .collect();
    let known: BTreeSet<&str> = listed.iter().copied().collect();
    let mut offenders: Vec<String> =
        found.difference(&known).map(|path| format!("{path}: holds `unsafe`")).collect();
    let gone = known.difference(&found);
    offenders.extend(gone.map(|path| format!("{path}: is listed and holds no `unsafe`")));
    if !listed.is_sorted() {
        offenders.push("the list is not sorted".to_owned());
    }
    Outcome::none_of(offenders).with_summary(format!("{} files", found.len()))
}

/// Returns whether a file lifts the ban, on one line or on several.
fn lifts_ban(text: &str) -> bool {
    let code = tokens(text).into_iter().filter(|token| token.kind != Kind::Comment);
    let code: Vec<&str> = code.map(|token| token.text).collect();
    code.windows(3).any(|words| matches!(words, ["expect" | "allow", "(", "unsafe_code"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_unsafe_are_compared_with_the_list() {
        let workspace = Workspace::of(&[
            ("a.rs", "#![expect(\n    unsafe_code,\n    reason = \"x\"\n)]"),
            ("b.rs", "#[allow(unsafe_code)]"),
            ("c.rs", "// #![expect(unsafe_code)]"),
        ]);
        let outcome = compare(&workspace, &["a.rs", "c.rs"]);
        let expected = ["b.rs: holds `unsafe`", "c.rs: is listed and holds no `unsafe`"];
        assert_eq!(outcome.offenders, expected);
        assert!(compare(&workspace, &["a.rs", "b.rs"]).holds);
        assert_eq!(compare(&workspace, &["b.rs", "a.rs"]).offenders, ["the list is not sorted"]);
    }
}
