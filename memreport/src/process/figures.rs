//! Reads single figures of this process from small files in `/proc/self`.
#![cfg_attr(unix, expect(unsafe_code, reason = "the C library knows the size of a page"))]

use std::fs;

use super::unavailable::Unavailable;

/// Sums over all mappings, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rollup {
    pub(crate) unique: u64,
    pub(crate) pss: u64,
    pub(crate) swap: u64,
}

/// Page faults since the process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) soft: u64,
    pub(crate) hard: u64,
}

/// Returns the bytes of address space and the resident bytes, from `/proc/self/statm`.
pub(crate) fn sizes() -> Result<(u64, u64), Unavailable> {
    parsed("/proc/self/statm", |text| {
        let mut pages = text.split_ascii_whitespace().map(str::parse::<u64>);
        Some((pages.next()?.ok()? * page_size(), pages.next()?.ok()? * page_size()))
    })
}

/// Returns the sums over all mappings that the kernel adds up, from `/proc/self/smaps_rollup`.
pub(crate) fn rollup() -> Result<Rollup, Unavailable> {
    parsed("/proc/self/smaps_rollup", |text| {
        let unique = kib(text, "Private_Clean")? + kib(text, "Private_Dirty")?;
        Some(Rollup { unique, pss: kib(text, "Pss")?, swap: kib(text, "Swap")? })
    })
}

/// Returns the high-water mark of resident bytes, from `/proc/self/status`.
pub(crate) fn peak() -> Result<u64, Unavailable> {
    parsed("/proc/self/status", |text| kib(text, "VmHWM"))
}

/// Returns the fields minflt and majflt of `/proc/self/stat`.
pub(crate) fn faults() -> Result<Faults, Unavailable> {
    parsed("/proc/self/stat", |text| {
        let mut fields = after_name(text)?.skip(7).map(|field| field.parse::<u64>().ok());
        let soft = fields.next()??;
        Some(Faults { soft, hard: fields.nth(1)?? })
    })
}

/// Returns the fields of a `stat` file from the third on. The second is the program's name in
/// parentheses, which may contain anything.
fn after_name(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(") ")?.1.split_ascii_whitespace())
}

/// Returns the age of the process in milliseconds.
pub(crate) fn age() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    age_of(&stat, &uptime, ticks_per_second())
}

/// Computes the age. The start of the process is in ticks since the machine started.
fn age_of(stat: &str, uptime: &str, ticks_per_second: u64) -> Option<u64> {
    let began = after_name(stat)?.nth(19)?.parse::<u64>().ok()?;
    let (seconds, hundredths) = uptime.split_ascii_whitespace().next()?.split_once('.')?;
    let now = seconds.parse::<u64>().ok()? * 1000 + hundredths.parse::<u64>().ok()? * 10;
    Some(now.saturating_sub(began * 1000 / ticks_per_second.max(1)))
}

fn parsed<T>(path: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Unavailable> {
    let text = fs::read_to_string(path).map_err(|source| Unavailable::NotRead { path, source })?;
    parse(&text).ok_or(Unavailable::NotUnderstood { path })
}

/// Returns the bytes in a line such as `Pss:     1234 kB`.
fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(unix)]
pub(super) fn page_size() -> u64 {
    // SAFETY: a plain call.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(not(unix))]
pub(super) fn page_size() -> u64 {
    4096
}

#[cfg(unix)]
fn ticks_per_second() -> u64 {
    // SAFETY: a plain call.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100)
}

#[cfg(not(unix))]
fn ticks_per_second() -> u64 {
    100
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

    #[test]
    fn a_name_of_parentheses_hides_no_field() {
        let stat = "17 (a) (b) S 1 2 3 4 5 6 70 8 90 10 11 12 13 14 15 16 17 18 4200 20";
        let mut fields = after_name(stat).unwrap().skip(7);
        assert_eq!((fields.next(), fields.nth(1)), (Some("70"), Some("90")));
        assert_eq!(age_of(stat, "100.25 9.9", 100), Some(100_250 - 42_000));
        assert_eq!(age_of(stat, "", 100), None);
    }
}
