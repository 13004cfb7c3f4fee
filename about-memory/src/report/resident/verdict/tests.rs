//! Tests each rule of the verdict.

use super::*;
use crate::report::resident::snapshot::tests::snapshot;

/// A program with 100 MB on the heap, of which 10 are dark, and 30 MB of files.
const BEFORE: &str = "
    resident 2 146800640
    rss/program/p 2 10485760
    rss/files/index 2 20971520
    rss/stacks 2 1048576
    rss/anonymous/unnamed 2 115343360
    heap-committed/allocated 2 104857600
    heap-committed/overhead 2 10485760
    explicit/heap-overhead/bin-unused 0 10485760
    heap-allocated 2 104857600
    explicit/cache 1 52428800
    explicit/index 1 41943040";

/// Returns the reports after these have grown by so many MB.
fn after(growth: &[(&str, i64)]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in BEFORE.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        let more = growth.iter().filter(|(path, _)| *path == words[0]).map(|(_, mb)| mb);
        let bytes = words[2].parse::<i64>().unwrap() + more.sum::<i64>() * 1_048_576;
        lines.push(format!("{} {} {bytes}", words[0], words[1]));
    }
    let is_new = |path: &&(&str, i64)| !BEFORE.contains(&format!("{} ", path.0));
    lines.extend(
        growth.iter().filter(is_new).map(|(path, mb)| format!("{path} 0 {}", mb * 1_048_576)),
    );
    lines.join("\n")
}

/// Concludes from ten minutes of this growth.
fn on(growth: &[(&str, i64)]) -> (Cause, String) {
    let verdict = of(&[snapshot(0, BEFORE), snapshot(10, &after(growth))]);
    (verdict.cause, verdict.sentence)
}

/// The figures that grow together with the heap.
const HEAP: [&str; 4] =
    ["resident", "rss/anonymous/unnamed", "heap-committed/allocated", "heap-allocated"];

#[test]
fn dark_matter_is_told() {
    let (cause, sentence) = on(&HEAP.map(|path| (path, 50)));
    assert_eq!(cause, Cause::DarkMatter);
    assert_eq!(
        sentence,
        "dark matter grew by 50.00 MiB in 10 min, 100% of what resident memory grew by: nobody reports it, so it is a leak \
         or a missing reporter; run the program with DMD=1 to see where it is allocated"
    );
}

#[test]
fn a_dump_beside_the_file_is_named() {
    let mut last = snapshot(10, &after(&HEAP.map(|path| (path, 50))));
    last.blocks = Some(Default::default());
    let verdict = of(&[snapshot(0, BEFORE), last]);
    assert!(
        verdict.sentence.contains("`about-memory heap records --explain`"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn a_cache_is_told_by_its_path() {
    let growth: Vec<_> =
        HEAP.into_iter().map(|path| (path, 50)).chain([("explicit/cache", 49)]).collect();
    let (cause, sentence) = on(&growth);
    assert_eq!(cause, Cause::Reported);
    assert!(
        sentence.starts_with(
            "explicit/cache grew by 49.00 MiB in 10 min, 98% of what resident memory grew by: its reporter"
        ),
        "{sentence}"
    );
}

#[test]
fn what_the_allocator_retains_is_told_with_the_peak_and_a_remedy() {
    let spike = after(&HEAP.map(|path| (path, 300)));
    let kept = after(&[
        ("resident", 290),
        ("rss/anonymous/unnamed", 290),
        ("heap-committed/overhead", 300),
        ("explicit/heap-overhead/bin-unused", 300),
    ]);
    let verdict = of(&[snapshot(0, BEFORE), snapshot(1, &spike), snapshot(10, &kept)]);
    assert_eq!(verdict.cause, Cause::Retained);
    assert_eq!(
        verdict.sentence,
        "live heap flat at 100.00 MiB in 10 min, heap-committed +300.00 MiB, of which +290.00 MiB resident, after a peak of \
         400.00 MiB: the allocator retains what the program freed; `malloc_trim(0)`, or `about-memory minimize`, \
         gives whole pages back, and `MALLOC_ARENA_MAX=2` keeps arenas few"
    );
}

#[test]
fn what_is_committed_and_not_in_memory_is_no_retention() {
    let (cause, _) =
        on(&[("heap-committed/overhead", 1000), ("explicit/heap-overhead/page-cache", 1000)]);
    assert_eq!(cause, Cause::NothingUnusual);
}

#[test]
fn a_few_megabytes_more_are_an_allocators_way() {
    let kept = |mb| {
        ["resident", "rss/anonymous/unnamed", "heap-committed/overhead"].map(|path| (path, mb))
    };
    // A small program: three MB are more than a twentieth.
    let small = "resident 2 10485760\nrss/anonymous/unnamed 2 5242880\nheap-committed/allocated 2 4194304\n\
                 heap-committed/overhead 2 0\nheap-allocated 2 4194304";
    let after = |mb| {
        let more: Vec<_> =
            kept(mb).iter().map(|(path, mb)| format!("{path} 2 {}", mb << 20)).collect();
        of(&[snapshot(0, small), snapshot(1, &format!("{small}\n{}", more.join("\n")))]).cause
    };
    assert_eq!(after(3), Cause::NothingUnusual);
    assert_eq!(after(5), Cause::Retained);
}

#[test]
fn a_huge_page_between_two_readings_is_no_growth() {
    // `resident` was read after the page came, and `rss` before.
    let small = "resident 2 10485760\nrss/anonymous/unnamed 2 10485760";
    let after = |mb: i64| {
        let resident = 10_485_760 + (mb << 20);
        let after = format!("resident 2 {resident}\nrss/anonymous/unnamed 2 10485760");
        of(&[snapshot(0, small), snapshot(1, &after)]).cause
    };
    assert_eq!(after(2), Cause::NothingUnusual);
    assert_eq!(after(4), Cause::Unknown);
}

#[test]
fn each_other_cause_is_told() {
    for (growth, cause, words) in [
        (
            [("resident", 50), ("rss/files/index", 50)],
            Cause::Files,
            "mapped files grew by 50.00 MiB",
        ),
        ([("resident", 50), ("rss/stacks", 50)], Cause::Stacks, "stacks of threads grew"),
        ([("resident", 50), ("rss/shared", 50)], Cause::Shared, "shared memory grew"),
        (
            [("resident", 50), ("rss/anonymous/unnamed", 50)],
            Cause::Anonymous,
            "mappings that stand for no file and that nobody reports grew",
        ),
    ] {
        let (found, sentence) = on(&growth);
        assert_eq!(found, cause);
        assert!(sentence.contains(words), "{sentence}");
    }
    let tables = [("resident", 50), ("rss/anonymous/unnamed", 50), ("explicit/dmd/tables", 50)];
    let (cause, sentence) = on(&tables);
    assert_eq!(cause, Cause::Tracker, "{sentence}");
    let (cause, sentence) = on(&[("resident", 50)]);
    assert_eq!(cause, Cause::Unknown);
    assert!(
        sentence.starts_with("what these files do not explain grew by 50.00 MiB"),
        "{sentence}"
    );
    let mapped = [("resident", 50), ("rss/anonymous/unnamed", 50), ("explicit/arena", 45)];
    let (cause, sentence) = on(&mapped);
    assert_eq!(cause, Cause::Mapped);
    assert!(sentence.starts_with("explicit/arena grew by 45.00 MiB"), "{sentence}");
    let code = [("resident", 50), ("rss/anonymous/unnamed", 50), ("heap-committed/other-code", 50)];
    let (cause, sentence) = on(&code);
    assert_eq!(cause, Cause::OtherCode);
    assert!(sentence.contains("code that is not Rust's grew by 50.00 MiB"), "{sentence}");
}

#[test]
fn what_hardly_grew_is_nothing_unusual() {
    let (cause, sentence) = on(&HEAP.map(|path| (path, 3)));
    assert_eq!(cause, Cause::NothingUnusual);
    assert_eq!(
        sentence,
        "nothing unusual: resident memory went from 140.00 MiB to 143.00 MiB in 10 min, and no single cause of it grew by more \
         than 3.00 MiB"
    );
    let kept = [("resident", 3), ("rss/anonymous/unnamed", 3), ("heap-committed/overhead", 3)];
    let (cause, sentence) = on(&kept);
    assert_eq!(cause, Cause::NothingUnusual);
    assert!(
        sentence.ends_with("grew by more than 3.00 MiB"),
        "what is retained counts: {sentence}"
    );
}

#[test]
fn one_snapshot_alone_is_judged_by_its_shares() {
    let at = |growth: &[(&str, i64)]| {
        let verdict = of(&[snapshot(0, &after(growth))]);
        (verdict.cause, verdict.sentence)
    };
    assert_eq!(at(&[]).0, Cause::NothingUnusual);
    assert_eq!(at(&HEAP.map(|path| (path, 50))).0, Cause::DarkMatter);
    assert_eq!(at(&[("resident", 400), ("rss/files/index", 400)]).0, Cause::Files);
    assert_eq!(at(&[("resident", 400), ("rss/anonymous/unnamed", 400)]).0, Cause::Anonymous);
    let (cause, sentence) =
        at(&[("resident", 400), ("rss/anonymous/unnamed", 400), ("heap-committed/overhead", 400)]);
    assert_eq!(cause, Cause::Retained);
    assert!(
        sentence.starts_with(
            "the allocator retains 410.00 MiB of 540.00 MiB resident, with 100.00 MiB allocated:"
        ),
        "{sentence}"
    );
}

#[test]
fn without_resident_nothing_is_said() {
    let verdict = of(&[snapshot(0, "explicit/a 1 5"), snapshot(1, BEFORE)]);
    assert_eq!(verdict.cause, Cause::Unknown);
    assert_eq!(of(&[snapshot(0, "explicit/a 1 5")]).cause, Cause::Unknown);
}

#[test]
fn times_are_said_in_one_unit() {
    let table = [(850, "850 ms"), (42_000, "42 s"), (600_000, "10 min"), (12_600_000, "3.5 h")];
    for (ms, text) in table {
        assert_eq!(time(ms), text);
    }
}

#[test]
fn without_a_reporter_neither_it_nor_dark_matter_grew() {
    let grown = after(&HEAP.map(|path| (path, 50)));
    let mut first = snapshot(0, BEFORE);
    first.is_incomplete = true;
    let verdict = of(&[first, snapshot(10, &grown)]);
    assert_eq!(
        (verdict.cause, verdict.sentence.as_str()),
        (
            Cause::Unknown,
            "heap-allocated went from 100.00 MiB to 150.00 MiB in 10 min; whether a reporter or dark matter grew is not \
             known, since reporters were missed: take the snapshot again"
        )
    );
}
