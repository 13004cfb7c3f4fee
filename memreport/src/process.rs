//! What the operating system says of the process as a whole.

use std::fs;

use crate::counters::heap_counters;
use crate::report::Report;

/// Adds the reports that every process has. What cannot be read is left out.
pub(crate) fn report(reports: &mut Vec<Report>) {
    if let Some(counters) = heap_counters() {
        let allocations = i64::try_from(counters.allocations).unwrap_or(i64::MAX);
        reports.push(Report::cumulative(
            "heap-allocations",
            allocations,
            "Blocks that the heap allocator has handed out.",
        ));
    }
    report_statm(reports);
    report_rollup(reports);
    report_faults(reports);
}

/// Bytes that are in physical memory now, where the system can say.
pub(crate) fn resident() -> Option<u64> {
    let text = read("/proc/self/statm")?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * u64::try_from(page_size()).ok()?)
}

/// `/proc/self/statm`: pages of address space, and of it resident.
fn report_statm(reports: &mut Vec<Report>) {
    let Some(text) = read("/proc/self/statm") else { return };
    let mut pages = text.split_ascii_whitespace().map(str::parse::<i64>);
    let page = page_size();
    if let (Some(Ok(size)), Some(Ok(resident))) = (pages.next(), pages.next()) {
        reports.push(Report::other("vsize", size * page, "Address space, used or not."));
        let description =
            "Memory of the process that is in physical memory, shared pages included.";
        reports.push(Report::other("resident", resident * page, description));
    }
}

/// `/proc/self/smaps_rollup`: the sums over all mappings, in KiB.
fn report_rollup(reports: &mut Vec<Report>) {
    let Some(text) = read("/proc/self/smaps_rollup") else { return };
    let sum = |keys: &[&str]| -> i64 { keys.iter().filter_map(|key| kib(&text, key)).sum() };
    let unique = sum(&["Private_Clean", "Private_Dirty"]);
    reports.push(Report::other(
        "resident-unique",
        unique,
        "Resident memory that no other process shares.",
    ));
    let pss = "Resident memory, each shared page divided by the processes that share it.";
    reports.push(Report::other("pss", sum(&["Pss"]), pss));
    reports.push(Report::other(
        "swap",
        sum(&["Swap"]),
        "Memory of the process that was written to swap.",
    ));
    if let Some(peak) = read("/proc/self/status").and_then(|status| kib(&status, "VmHWM")) {
        reports.push(Report::other("resident-peak", peak, "The most that was ever resident."));
    }
}

/// `/proc/self/stat`: the fields minflt and majflt.
fn report_faults(reports: &mut Vec<Report>) {
    let Some(text) = read("/proc/self/stat") else { return };
    // The second field is the program's name in parentheses, which may hold anything.
    let Some((_, fields)) = text.rsplit_once(") ") else { return };
    let mut fields = fields.split_ascii_whitespace().skip(7).map(str::parse::<i64>);
    if let (Some(Ok(soft)), _, Some(Ok(hard))) = (fields.next(), fields.next(), fields.next()) {
        let soft_faults = "Page faults that were served without reading from disk.";
        reports.push(Report::cumulative("page-faults-soft", soft, soft_faults));
        reports.push(Report::cumulative(
            "page-faults-hard",
            hard,
            "Page faults that had to read from disk.",
        ));
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The bytes in a line such as `Pss:     1234 kB`.
fn kib(text: &str, key: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()? * 1024)
}

#[cfg(unix)]
fn page_size() -> i64 {
    #[expect(unsafe_code, reason = "the C library knows the size of a page")]
    // SAFETY: a plain call.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes
}

#[cfg(not(unix))]
fn page_size() -> i64 {
    4096
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_smaps_is_read_in_bytes() {
        let text = "Rss:  8 kB\nPss:                 1234 kB\nPss_Dirty: 7 kB\n";
        assert_eq!(kib(text, "Pss"), Some(1_263_616));
        assert_eq!(kib(text, "Pss_Dirty"), Some(7168));
        assert_eq!(kib(text, "Swap"), None);
    }
}
