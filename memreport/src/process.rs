//! Reads the figures that the operating system and the allocator provide for the whole process.

mod unavailable;
// macOS has no such files. Their tests run there all the same.
#[cfg_attr(target_os = "macos", allow(dead_code, reason = "`task` has most figures there"))]
mod figures;
#[cfg(target_os = "macos")]
mod task;
mod smaps;
mod kinds;
mod stacks;
mod heap;
pub(crate) mod environment;
pub mod distinguished;
pub(crate) mod minimize;

pub(crate) use figures::{Faults, Rollup, rollup};
#[cfg(not(target_os = "macos"))]
pub(crate) use figures::{age, faults, peak, sizes};
pub(crate) use heap::{Heap, fraction, prepare};

use crate::allocator::declaration::heap_counters;
use crate::report::Report;
use crate::report::reporter::Gathered;
use kinds::Kinds;
#[cfg(target_os = "macos")]
pub(crate) use task::{age, faults, peak, sizes};

/// Adds the reports that every process has. Figures that cannot be read are left out.
pub(crate) fn report(gathered: &mut Gathered) {
    let reports = &mut gathered.reports;
    if let Some(counters) = heap_counters() {
        let allocations = i64::try_from(counters.allocations).unwrap_or(i64::MAX);
        reports.push(Report::cumulative(
            "heap-allocations",
            allocations,
            "Blocks that the heap allocator has handed out.",
        ));
    }
    report_figures(reports);
}

/// Returns the bytes in physical memory, if the system provides them.
pub(crate) fn resident() -> Option<u64> {
    Some(sizes().ok()?.1)
}

/// Adds the reports of resident memory by kind. The kernel counts pages for them.
pub(crate) fn report_mappings(gathered: &mut Gathered, anonymize: bool) {
    if let Some(mut mappings) = smaps::read() {
        report_sums(&smaps::sums(&mappings), &mut gathered.reports);
        let stacks = stacks::find(&mut mappings);
        stacks.report(gathered);
        Kinds::new(&mappings, &stacks, anonymize).report(&mut gathered.reports);
    }
}

fn report_figures(reports: &mut Vec<Report>) {
    if let Ok((size, resident)) = sizes() {
        reports.push(Report::other("vsize", bytes(size), "Address space, used or not."));
        let description =
            "Memory of the process that is in physical memory, shared pages included.";
        reports.push(Report::other("resident", bytes(resident), description));
    }
    if let Ok(peak) = peak() {
        reports.push(Report::other(
            "resident-peak",
            bytes(peak),
            "The most that was ever resident.",
        ));
    }
    #[cfg(target_os = "macos")]
    if let Ok(footprint) = task::footprint() {
        let description = "Memory that macOS charges to the process: written pages, compressed ones \
                           too, without pages that can be read from files again. The figure of \
                           Activity Monitor, from task_info.";
        reports.push(Report::other("phys-footprint", bytes(footprint), description));
    }
    if let Ok(Faults { soft, hard }) = faults() {
        reports.push(Report::cumulative(
            "page-faults-soft",
            bytes(soft),
            "Page faults that were served without reading from disk.",
        ));
        reports.push(Report::cumulative(
            "page-faults-hard",
            bytes(hard),
            "Page faults that had to read from disk.",
        ));
    }
}

fn report_sums(sums: &Rollup, reports: &mut Vec<Report>) {
    let lines = [
        ("resident-unique", sums.unique, "Resident memory that no other process shares."),
        (
            "pss",
            sums.pss,
            "Resident memory, each shared page divided by the processes that share it.",
        ),
        ("swap", sums.swap, "Memory of the process that was written to swap."),
    ];
    let reported = lines
        .into_iter()
        .map(|(path, sum, description)| Report::other(path, bytes(sum), description));
    reports.extend(reported);
}

fn bytes(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
