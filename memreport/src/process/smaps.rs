//! Reads the mappings of this process and the resident bytes of each, from `/proc/self/smaps`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;

use super::figures::Rollup;

/// One mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) addresses: Range<u64>,
    /// The permissions, such as `rw-p`.
    pub(super) permissions: String,
    /// The file, or the kernel's name. Empty for anonymous memory.
    pub(super) name: String,
    pub(super) rss: u64,
    pub(super) pss: u64,
    pub(super) swap: u64,
    /// Resident bytes in pages that no other process has.
    pub(super) private: u64,
}

/// Reads the file line by line, because its text is several times as large as the result.
pub(super) fn read() -> Option<Vec<Mapping>> {
    let file = File::open("/proc/self/smaps").ok()?;
    parse(&mut BufReader::with_capacity(1 << 15, file))
}

fn parse(text: &mut dyn BufRead) -> Option<Vec<Mapping>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut line = String::new();
    while text.read_line(&mut line).ok()? > 0 {
        if let Some((key, amount)) = amount(&line) {
            mappings.last_mut()?.set(key, amount);
        } else if let Some(mapping) = head(line.trim_end()) {
            mappings.push(mapping);
        }
        line.clear();
    }
    Some(mappings)
}

/// Parses a line such as `Rss:        1234 kB` into its key and bytes.
fn amount(line: &str) -> Option<(&str, u64)> {
    let (key, value) = line.split_once(':')?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some((key, kib * 1024))
}

/// Parses a head line such as `5563333bd000-5563333be000 rw-p 00003000 fe:00 247749  /usr/bin/sed`.
fn head(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let mut rest = rest;
    let mut field = || {
        let (first, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = after;
        first
    };
    let permissions = field().to_owned();
    let [_offset, _device, _inode] = [field(), field(), field()];
    Some(Mapping {
        addresses: address(start)?..address(end)?,
        permissions,
        name: rest.trim_start().to_owned(),
        ..Mapping::default()
    })
}

impl Mapping {
    fn set(&mut self, key: &str, bytes: u64) {
        match key {
            "Rss" => self.rss = bytes,
            "Pss" => self.pss = bytes,
            "Swap" => self.swap = bytes,
            "Private_Clean" | "Private_Dirty" => self.private += bytes,
            _ => {}
        }
    }

    /// Subtracts `rss` resident bytes from the mapping, with their share of `pss`. Returns both.
    pub(super) fn take(&mut self, rss: u64) -> (u64, u64) {
        let rss = rss.min(self.rss);
        let pss = match self.rss {
            0 => 0,
            // The product cannot overflow in KiB, and all three are whole numbers of KiB.
            whole => ((self.pss >> 10) * (rss >> 10) / (whole >> 10).max(1)) << 10,
        };
        self.rss -= rss;
        self.pss -= pss;
        (rss, pss)
    }
}

/// Returns the sums over all mappings.
pub(super) fn sums(mappings: &[Mapping]) -> Rollup {
    let sum = |of: fn(&Mapping) -> u64| mappings.iter().map(of).sum();
    Rollup {
        unique: sum(|mapping| mapping.private),
        pss: sum(|mapping| mapping.pss),
        swap: sum(|mapping| mapping.swap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
5563333bd000-5563333be000 rw-p 00003000 fe:00 247749                     /srv/a b: c (deleted)
Size:                  4 kB
Rss:                   4 kB
Pss:                   2 kB
Pss_Dirty:             1 kB
Private_Clean:         1 kB
Private_Dirty:         3 kB
Swap:                  8 kB
SwapPss:               8 kB
THPeligible:           0
VmFlags: rd mr mw me
7f0000000000-7f0000200000 rw-p 00000000 00:00 0
Rss:                 100 kB
Pss:                  50 kB
";

    #[test]
    fn mappings_are_read_with_their_names() {
        let mappings = parse(&mut TEXT.as_bytes()).unwrap();
        let [file, anonymous] = &mappings[..] else { panic!("{mappings:?}") };
        assert_eq!(file.addresses, 0x5563_333b_d000..0x5563_333b_e000);
        assert_eq!(file.name, "/srv/a b: c (deleted)");
        assert_eq!(file.permissions, "rw-p");
        assert_eq!((file.rss, file.pss, file.swap, file.private), (4096, 2048, 8192, 4096));
        assert_eq!((anonymous.name.as_str(), anonymous.rss), ("", 102_400));
        assert_eq!(sums(&mappings), Rollup { unique: 4096, pss: 53_248, swap: 8192 });
    }

    #[test]
    fn what_is_taken_out_is_gone() {
        let mut mapping = Mapping { rss: 1000 << 10, pss: 500 << 10, ..Mapping::default() };
        assert_eq!(mapping.take(100 << 10), (100 << 10, 50 << 10));
        assert_eq!(mapping.take(1 << 30), (900 << 10, 450 << 10));
        assert_eq!(mapping.take(1), (0, 0));
    }
}
