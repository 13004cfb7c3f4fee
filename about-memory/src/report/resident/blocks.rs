//! Adds up the reported and the unreported blocks of a dump.

use memreport_analysis::read::{Dump, Mode};

/// The blocks of a dump, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The requested bytes of reported blocks.
    pub reported: i64,
    /// The slop of reported blocks.
    pub reported_slop: i64,
    /// The requested bytes of unreported blocks.
    pub unreported: i64,
    /// The slop of unreported blocks.
    pub unreported_slop: i64,
}

impl Blocks {
    /// Adds up the blocks of a dump; `None` for a sample, or if the dump contains no reports.
    pub(crate) fn of_dump(dump: &Dump) -> Option<Blocks> {
        let extension = dump.extension.as_ref();
        let says_who_reports = match dump.invocation.mode {
            Mode::DarkMatter => true,
            // Scans by Firefox contain no reports.
            Mode::Scan => extension.is_some(),
            _ => false,
        };
        if !says_who_reports || extension.is_some_and(|extension| extension.sampled.is_some()) {
            return None;
        }
        let mut sums = Blocks::default();
        for block in dump.blocks.iter().filter(|block| !block.kind.freed) {
            let bytes =
                |bytes: u64| i64::try_from(bytes.saturating_mul(block.num)).unwrap_or(i64::MAX);
            let is_reported = dump.reports(&block).is_some_and(|reports| !reports.is_empty());
            let (asked, slop) = if is_reported {
                (&mut sums.reported, &mut sums.reported_slop)
            } else {
                (&mut sums.unreported, &mut sums.unreported_slop)
            };
            *asked = asked.saturating_add(bytes(block.req));
            *slop = slop.saturating_add(bytes(block.slop));
        }
        Some(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memreport_analysis::read::read_slice;

    #[test]
    fn blocks_are_added_up_where_the_dump_says_who_reports_them() {
        let sums = |mode: &str| {
            let text = format!(
                r##"{{"version": 5, "invocation": {{"dmdEnvVar": null, "mode": "{mode}"}},
                "blockList": [{{"req": 100, "slop": 12, "alloc": "A"}}, {{"req": 60, "slop": 4, "alloc": "A", "num": 2}}],
                "traceTable": {{"A": ["B"]}}, "frameTable": {{"B": "#00: main (main.rs:1)"}}}}"##
            );
            Blocks::of_dump(&read_slice(text.as_bytes()).unwrap())
        };
        let unreported = Blocks { unreported: 220, unreported_slop: 20, ..Blocks::default() };
        assert_eq!(sums("dark-matter"), Some(unreported));
        for silent in ["live", "cumulative", "scan"] {
            assert_eq!(sums(silent), None, "{silent}");
        }
    }
}
