//! Processor time and memory of the agent itself.

use std::fs;

/// Figures of this process.
pub(super) struct Usage {
    /// Microseconds of processor time.
    pub(super) cpu_us: u64,
    /// Bytes in physical memory.
    pub(super) resident: u64,
}

/// Returns the figures of this process, if the kernel shows them.
pub(super) fn usage() -> Option<Usage> {
    // Of the process, with threads that have ended: a counter never decreases.
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name is in parentheses, and may contain some.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |at: usize| -> Option<u64> { fields.get(at)?.parse().ok() };
    let cpu_us =
        (ticks(11)? + ticks(12)?) * 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let pages: u64 =
        fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    let page = rustix::param::page_size() as u64;
    Some(Usage { cpu_us, resident: pages * page })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_threads_that_have_ended_counts() {
        let work = || {
            let begin = usage().expect("the kernel has it").cpu_us;
            // Processor time, however busy the machine is.
            while usage().expect("the kernel has it").cpu_us < begin + 50_000 {}
        };
        let before = usage().expect("the kernel has it").cpu_us;
        std::thread::spawn(work).join().expect("it only counts");
        let after = usage().expect("the kernel has it").cpu_us;
        assert!(after >= before + 50_000, "{before} µs, then {after} µs");
    }
}
