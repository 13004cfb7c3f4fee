//! Reports the memory of allocators beyond the live blocks.

use super::bytes;
use crate::allocator::counters::totals;
use crate::allocator::declaration::statistics;
use crate::allocator::{HeapDivision, HeapStatistics};
use crate::report::Report;

/// The allocators' statistics, read before a collection allocates anything itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heap {
    /// The statistics of the program's allocator.
    own: Option<HeapStatistics>,
    /// The statistics of the C library's malloc, if the program declares another allocator.
    c: Option<HeapStatistics>,
    blocks: u64,
}

impl Heap {
    pub(crate) fn read() -> Self {
        let own = statistics();
        let is_c = own.is_some_and(|own| own.allocator == "glibc");
        Heap { own, c: if is_c { None } else { c_library() }, blocks: totals().live_blocks() }
    }

    /// Returns the name of the program's allocator, if its statistics were read.
    pub(crate) fn allocator(&self) -> Option<&'static str> {
        Some(self.own?.allocator)
    }

    /// Divides the committed bytes, so that they add up with the bytes reported as
    /// `heap-allocated`.
    pub(crate) fn report(&self, allocated: u64, reports: &mut Vec<Report>) {
        if let Some(own) = &self.own {
            let division = own.divide(allocated, self.blocks);
            report_own(own, allocated, division, reports);
        }
        if let Some(c) = &self.c {
            report_c(c, reports);
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn c_library() -> Option<HeapStatistics> {
    // Miri has no such function, and treats the look-up as an error.
    if cfg!(miri) { None } else { crate::allocator::system::glibc::statistics() }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn c_library() -> Option<HeapStatistics> {
    None
}

/// Calls the dynamic linker as far as statistics need it, before a collection takes its lock.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
pub(crate) fn prepare() {
    crate::allocator::system::glibc::look_up();
}

/// Does nothing: the statistics of this system need no look-up.
#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
pub(crate) fn prepare() {}

fn report_own(
    own: &HeapStatistics,
    allocated: u64,
    division: HeapDivision,
    reports: &mut Vec<Report>,
) {
    let name = own.allocator;
    let committed = format!("Memory that {name} has of the operating system: ");
    let mut commit = |path: &str, amount, what: &str| {
        let path = format!("heap-committed/{path}");
        reports.push(Report::other(path, bytes(amount), format!("{committed}{what}")));
    };
    commit("allocated", allocated, "blocks of the program, as in heap-allocated.");
    commit("overhead", division.overhead(), "the sum of explicit/heap-overhead.");
    if division.other_code > 0 {
        commit(
            "other-code",
            division.other_code,
            "blocks of code that is not Rust's, and free blocks that threads keep at hand.",
        );
    }
    let parts = [
        ("bin-unused", division.bin_unused, "free, between blocks or in pages that have some"),
        (
            "page-cache",
            division.page_cache,
            "in pages that hold no block and are kept for new ones",
        ),
        ("bookkeeping", division.bookkeeping, "used by the allocator to know its blocks"),
        ("unused", division.unused, "in no block; the allocator does not say why"),
    ];
    for (part, amount, what) in parts.into_iter().filter(|(_, amount, _)| *amount > 0) {
        let description = format!("Heap memory that is {what}. From {name}'s statistics.");
        reports.push(Report::non_heap(
            format!("explicit/heap-overhead/{part}"),
            bytes(amount),
            description,
        ));
    }
    if let Some(resident) = own.resident {
        let description = format!("Of heap-committed, what {name} takes to be in physical memory.");
        reports.push(Report::other("heap-resident", bytes(resident), description));
    }
    reports.push(Report::percentage(
        "heap-overhead-fraction",
        fraction(division.overhead(), allocated),
        "Of the heap memory of the program's blocks and the allocator's overhead, the overhead.",
    ));
}

/// Reports the C library's heap. Its owners report it, so it is not in `explicit`.
fn report_c(c: &HeapStatistics, reports: &mut Vec<Report>) {
    let lines = [
        ("c-heap/in-use", c.in_use(), "in blocks that were handed out, and in caches of threads"),
        ("c-heap/free", c.page_cache + c.bin_unused, "free, and kept for new blocks"),
    ];
    for (path, amount, what) in lines {
        let description = format!(
            "The heap of the C library's malloc, which is not the program's allocator: memory {what}. From mallinfo2."
        );
        reports.push(Report::other(path, bytes(amount), description));
    }
}

/// Returns the overhead's share in hundredths of a percent.
pub(crate) fn fraction(overhead: u64, allocated: u64) -> i64 {
    let whole = u128::from(overhead) + u128::from(allocated);
    i64::try_from((u128::from(overhead) * 10_000).checked_div(whole).unwrap_or(0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_the_sum_of_its_reports() {
        let own = HeapStatistics {
            header: 8,
            page_cache: 1000,
            bin_unused: 2000,
            rest: crate::HeapRest::OtherCode,
            ..HeapStatistics::new("glibc", 50_000)
        };
        let mut reports = Vec::new();
        Heap { own: Some(own), c: None, blocks: 10 }.report(40_000, &mut reports);
        let sum = |start: &str| -> i64 {
            let of = reports.iter().filter(|report| report.path.starts_with(start));
            of.map(|report| report.amount).sum()
        };
        assert_eq!(sum("heap-committed/"), 50_000);
        assert_eq!(sum("heap-committed/overhead"), sum("explicit/heap-overhead/"));
        assert_eq!(sum("heap-overhead-fraction"), 3080 * 10_000 / 43_080);
    }

    #[test]
    fn no_memory_has_no_overhead() {
        assert_eq!(fraction(0, 0), 0);
        assert_eq!(fraction(1, 3), 2500);
    }
}
