//! Divides resident memory into sums, down to reports. A remainder is a part of its own.

use super::snapshot::{ProcessSnapshot, add_up};
use crate::report::report_tree::shown_name;

/// A whole and its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The way of dividing, as `by use`.
    pub by: &'static str,
    /// The divided amount.
    pub whole: Line,
    /// Invariant: they add up to the whole.
    pub parts: Vec<Line>,
}

/// An amount of bytes with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The name.
    pub name: String,
    /// The number of bytes.
    pub bytes: i64,
    /// The source of the number.
    pub source: &'static str,
}

/// The name of a remainder.
pub(crate) const REST: &str = "not explained";

/// The number of reported paths with a line of their own.
const PATHS: usize = 6;

fn line(name: impl Into<String>, bytes: i64, source: &'static str) -> Line {
    Line { name: name.into(), bytes, source }
}

impl Sum {
    /// Makes a sum. A remainder becomes a part.
    fn new(by: &'static str, whole: Line, mut parts: Vec<Line>) -> Self {
        let rest = whole.bytes - add_up(parts.iter().map(|part| &part.bytes));
        if rest != 0 {
            parts.push(line(REST, rest, "what is left"));
        }
        Sum { by, whole, parts }
    }
}

/// Anonymous memory by owner.
///
/// The kernel does not report the owner of a page. So each owner in turn gets at most what it
/// reports, and the remainder is a part of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Anonymous {
    /// The program's allocator.
    pub(crate) heap: i64,
    /// The C library's allocator, if the program uses another.
    pub(crate) c_heap: i64,
    /// DMD's tables.
    pub(crate) dmd: i64,
    /// Memory that reporters report as mapped, by path.
    pub(crate) mapped: Vec<(String, i64)>,
    pub(crate) rest: i64,
}

/// The path of DMD's own tables.
const DMD: &str = "explicit/dmd";

impl Anonymous {
    pub(crate) fn of(snapshot: &ProcessSnapshot) -> Self {
        let mut left = snapshot.below("rss/anonymous") + snapshot.below("rss/heap");
        let mut take = |at_most: i64| {
            let bytes = at_most.clamp(0, left.max(0));
            left -= bytes;
            bytes
        };
        let dmd = take(snapshot.mapped().get(DMD).copied().unwrap_or(0));
        // If the program uses another allocator, the segment after its data belongs to the C
        // library.
        let c_heap = take(snapshot.below("c-heap").min(snapshot.below("rss/heap")));
        let committed = snapshot.below("heap-committed");
        let heap = take(snapshot.figure("heap-resident").unwrap_or(committed));
        let others = snapshot.mapped().iter().filter(|(path, _)| *path != DMD);
        let mapped = others.map(|(path, bytes)| (path.clone(), take(*bytes))).collect();
        Anonymous { heap, c_heap, dmd, mapped, rest: left }
    }
}

/// Returns all sums of one snapshot, from resident memory to single blocks. Leaves out sums without
/// figures. The heap is divided into `paths`, and the others together.
pub fn sums(snapshot: &ProcessSnapshot, paths: &[&str]) -> Vec<Sum> {
    [
        resident(snapshot),
        in_memory(snapshot),
        committed(snapshot),
        allocated(snapshot, paths),
        blocks(snapshot),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn resident(snapshot: &ProcessSnapshot) -> Option<Sum> {
    let whole = line("resident", snapshot.figure("resident")?, "/proc/self/statm");
    let anonymous = Anonymous::of(snapshot);
    let smaps = "/proc/self/smaps";
    let mut parts = vec![
        line("program file", snapshot.below("rss/program"), smaps),
        line("libraries", snapshot.below("rss/libraries"), smaps),
        line("other mapped files", snapshot.below("rss/files"), smaps),
        line("stacks of threads", snapshot.below("rss/stacks"), smaps),
        line("shared memory", snapshot.below("rss/shared"), smaps),
        line("heap-committed, in memory", anonymous.heap, "at most, by allocator"),
        line("C's own heap", anonymous.c_heap, "at most, by mallinfo2"),
        line("DMD's tables", anonymous.dmd, "at most, by DMD"),
    ];
    let mapped = anonymous.mapped.into_iter();
    parts
        .extend(mapped.map(|(path, bytes)| line(shown_name(&path), bytes, "at most, by reporter")));
    parts.push(line("other anonymous mappings", anonymous.rest, smaps));
    parts.push(line("of the kernel", snapshot.below("rss/other"), smaps));
    Some(Sum::new("by kind of memory", whole, parts))
}

fn in_memory(snapshot: &ProcessSnapshot) -> Option<Sum> {
    let committed = snapshot.below("heap-committed");
    let heap = Anonymous::of(snapshot).heap;
    if !snapshot.has("heap-committed") {
        return None;
    }
    let whole = line("heap-committed", committed, "allocator");
    let parts = vec![
        line("in memory", heap, "as above"),
        line("not touched, or returned", committed - heap, "by subtraction"),
    ];
    Some(Sum::new("by residence", whole, parts))
}

fn committed(snapshot: &ProcessSnapshot) -> Option<Sum> {
    if !snapshot.has("heap-committed") {
        return None;
    }
    let allocated = snapshot.below("heap-committed/allocated");
    let whole = line("heap-committed", snapshot.below("heap-committed"), "allocator");
    let overhead = |part: &str| snapshot.below(&format!("explicit/heap-overhead/{part}"));
    let parts = vec![
        line("heap-allocated", allocated, "counters"),
        line("free among blocks", overhead("bin-unused"), "allocator"),
        line("pages kept for new blocks", overhead("page-cache"), "allocator"),
        line("not in use, undivided", overhead("unused"), "allocator"),
        line("bookkeeping", overhead("bookkeeping"), "allocator"),
        line("wasted", overhead("waste"), "allocator"),
        line("C's own heap", snapshot.below("heap-committed/other-code"), "by subtraction"),
    ];
    Some(Sum::new("by use", whole, parts))
}

/// Returns the paths of the heap with the most bytes, the largest first.
pub(crate) fn largest_paths(snapshot: &ProcessSnapshot) -> Vec<&str> {
    let mut reported: Vec<_> = snapshot.heap().iter().collect();
    // Equal amounts keep the order of their paths.
    reported.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    reported.into_iter().take(PATHS).map(|(path, _)| path.as_str()).collect()
}

fn allocated(snapshot: &ProcessSnapshot, paths: &[&str]) -> Option<Sum> {
    let whole = line("heap-allocated", snapshot.figure("heap-allocated")?, "counters");
    let heap = snapshot.heap();
    let listed = paths.iter().filter_map(|path| heap.get_key_value(*path));
    let mut parts: Vec<_> =
        listed.map(|(path, bytes)| line(shown_name(path), *bytes, "reporter")).collect();
    if parts.len() < heap.len() {
        let others = heap.iter().filter(|(path, _)| !paths.contains(&path.as_str()));
        let sum = add_up(others.map(|(_, bytes)| bytes));
        parts.push(line("other reported paths", sum, "reporters"));
    }
    parts.push(line("dark matter", dark(snapshot), "by subtraction"));
    Some(Sum::new("by reporter", whole, parts))
}

/// Returns the allocated bytes that no report names; negative if more is reported than allocated.
pub(crate) fn dark(snapshot: &ProcessSnapshot) -> i64 {
    snapshot.figure("heap-allocated").unwrap_or(0) - add_up(snapshot.heap().values())
}

fn blocks(snapshot: &ProcessSnapshot) -> Option<Sum> {
    let blocks = snapshot.blocks?;
    let whole = line("heap-allocated", snapshot.figure("heap-allocated")?, "counters");
    let parts = vec![
        line("reported, as requested", blocks.reported, "DMD"),
        line("slop of reported blocks", blocks.reported_slop, "DMD"),
        line("unreported, as requested", blocks.unreported, "DMD"),
        line("slop of unreported blocks", blocks.unreported_slop, "DMD"),
    ];
    Some(Sum::new("by block", whole, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::resident::blocks::Blocks;
    use crate::report::resident::snapshot::tests::snapshot;

    const REPORTS: &str = "
        resident 2 10000
        rss/program/p 2 1000
        rss/libraries/l 2 500
        rss/files/f 2 2000
        rss/stacks 2 100
        rss/shared 2 50
        rss/heap 2 1000
        rss/anonymous/unnamed 2 5000
        rss/other 2 4
        heap-committed/allocated 2 3000
        heap-committed/overhead 2 600
        heap-committed/other-code 2 400
        explicit/heap-overhead/bin-unused 0 500
        explicit/heap-overhead/bookkeeping 0 100
        explicit/dmd/tables 0 1500
        explicit/arena 0 700
        heap-allocated 2 3000
        explicit/a/x 1 1000
        explicit/a/y 1 200
        explicit/b 1 300";

    #[test]
    fn every_sum_adds_up() {
        let mut snapshot = snapshot(0, REPORTS);
        snapshot.blocks = Some(Blocks {
            reported: 1400,
            reported_slop: 90,
            unreported: 1500,
            unreported_slop: 10,
        });
        let sums = sums(&snapshot, &largest_paths(&snapshot));
        assert_eq!(sums.len(), 5);
        for sum in &sums {
            let parts: i64 = sum.parts.iter().map(|part| part.bytes).sum();
            assert_eq!(parts, sum.whole.bytes, "{}", sum.whole.name);
        }
        let part = |sum: usize, name: &str| {
            sums[sum].parts.iter().find(|part| part.name == name).map(|part| part.bytes)
        };
        assert_eq!(part(0, "heap-committed, in memory"), Some(4000));
        assert_eq!(part(0, "DMD's tables"), Some(1500));
        assert_eq!(part(0, "explicit/arena"), Some(500), "no more is left of anonymous memory");
        assert_eq!(part(0, "other anonymous mappings"), Some(0));
        assert_eq!(part(0, REST), Some(346));
        assert_eq!(part(2, REST), None);
        assert_eq!(part(3, "explicit/a"), Some(1200));
        assert_eq!(part(3, "dark matter"), Some(1500));
    }

    #[test]
    fn what_a_file_does_not_say_is_left_out() {
        let sums = sums(&snapshot(0, "resident 2 100\nheap-allocated 2 10"), &[]);
        let wholes: Vec<_> = sums.iter().map(|sum| sum.whole.name.as_str()).collect();
        assert_eq!(wholes, ["resident", "heap-allocated"]);
        assert_eq!(
            sums[0].parts.last().map(|part| (part.name.as_str(), part.bytes)),
            Some((REST, 100))
        );
    }
}
