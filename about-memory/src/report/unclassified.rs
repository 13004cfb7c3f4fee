//! Computes unclassified memory, and checks the limit of `--fail-above`.

use std::error::Error;
use std::io::Read;

use memreport::snapshot::HEAP_UNCLASSIFIED_OR_MISSED;
use memreport::snapshot::read::{self, Entry, Field, Sink};
use memreport_analysis::analysis::{Class, Explained};

/// The figures of a snapshot that the limit concerns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// True if reporters were missed, whose memory is in the unreported share.
    is_incomplete: bool,
    /// The unreported share of the heap, in percent.
    unclassified: f64,
    /// The number of blocks that are reported twice.
    doubles: i128,
    /// The number of reports of memory that is not a whole block.
    wrong: i128,
}

impl Verdict {
    pub(crate) fn new(explained: &Explained, unclassified: UnreportedShare) -> Self {
        let doubles = explained.totals(Class::TwiceReported).blocks;
        Verdict {
            is_incomplete: unclassified.is_incomplete,
            unclassified: unclassified.percent,
            doubles,
            wrong: explained.wrong.iter().map(|place| i128::from(place.num)).sum(),
        }
    }

    /// Returns the violations as sentences.
    pub(crate) fn complaints(self, most: f64) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.is_incomplete {
            complaints.push(format!(
                "reporters were missed, so up to {:.2} % of the heap may be unclassified",
                self.unclassified
            ));
        } else if self.unclassified > most {
            complaints.push(format!(
                "{:.2} % of the heap is unclassified, and at most {most} % may be",
                self.unclassified
            ));
        }
        if self.doubles > 0 {
            complaints.push(format!("{} reported twice", count(self.doubles, "block")));
        }
        if self.wrong > 0 {
            complaints.push(format!(
                "{} of memory that is not a whole block",
                count(self.wrong, "report")
            ));
        }
        complaints
    }
}

fn count(number: i128, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// The share of the heap that no report names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnreportedShare {
    percent: f64,
    /// True if reporters were missed, so that the bytes are not unclassified.
    is_incomplete: bool,
}

/// Returns `heap-unclassified` in percent of `heap-allocated`, by subtraction as in the tree.
pub(crate) fn unclassified_percent(
    report: &mut dyn Read,
) -> Result<UnreportedShare, Box<dyn Error + Send + Sync>> {
    let mut sums = Totals::default();
    read::read(report, read::Options { utf8: true, ..read::Options::default() }, &mut sums)?;
    let percent = if sums.allocated == 0.0 {
        0.0
    } else {
        (sums.allocated - sums.reported) * 100.0 / sums.allocated
    };
    Ok(UnreportedShare { percent, is_incomplete: sums.is_incomplete })
}

/// The two numbers whose difference is `heap-unclassified`.
#[derive(Default)]
struct Totals {
    allocated: f64,
    reported: f64,
    is_incomplete: bool,
}

impl Sink for Totals {
    fn restart(&mut self) {
        *self = Totals::default();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        const HEAP: f64 = 1.0;
        let Field::Number(amount) = entry.amount else { return Ok(()) };
        if entry.path == "heap-allocated" {
            self.allocated += amount;
        } else if entry.path == HEAP_UNCLASSIFIED_OR_MISSED {
            self.is_incomplete = true;
        } else if entry.path.starts_with("explicit/") && entry.kind == Field::Number(HEAP) {
            self.reported += amount;
        }
        Ok(())
    }
}

/// The sums of a report that `ps` prints.
#[derive(Debug, Default)]
pub(crate) struct HeapSums {
    heap: i64,
    non_heap: i64,
    heap_allocated: Option<i64>,
    is_incomplete: bool,
    notes: Vec<String>,
}

impl HeapSums {
    /// Reads the sums of a report.
    ///
    /// # Errors
    /// It is no report, or ends too early.
    pub(crate) fn read(report: &mut dyn Read) -> Result<Self, read::ReadError> {
        let mut sums = HeapSums::default();
        let header = read::read(report, read::Options::default(), &mut sums)?;
        sums.notes = header.own.notes;
        Ok(sums)
    }

    /// Returns the report's notes about its own collection, as sentences.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns whether reporters were missed: the bytes that no report names may be theirs.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Returns the unreported bytes of the heap; `None` if the allocator does not count.
    pub(crate) fn unclassified(&self) -> Option<i64> {
        Some(self.heap_allocated?.saturating_sub(self.heap))
    }

    /// Returns their share of `explicit`, in percent.
    pub(crate) fn share(&self) -> Option<f64> {
        let unclassified = self.unclassified()?;
        let explicit = self.heap.saturating_add(self.non_heap).saturating_add(unclassified);
        #[expect(clippy::cast_precision_loss, reason = "a share, printed with two digits")]
        let share = unclassified as f64 * 100.0 / explicit.max(1) as f64;
        Some(share)
    }
}

impl Sink for HeapSums {
    fn restart(&mut self) {
        *self = HeapSums::default();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (Field::Number(kind), Field::Number(amount)) = (&entry.kind, &entry.amount) else {
            return Ok(());
        };
        #[expect(clippy::cast_possible_truncation, reason = "bytes, as the program wrote them")]
        let amount = *amount as i64;
        if entry.path == HEAP_UNCLASSIFIED_OR_MISSED {
            self.is_incomplete = true;
        } else if entry.path.starts_with("explicit/") {
            let sum = if *kind == 1.0 { &mut self.heap } else { &mut self.non_heap };
            *sum = sum.saturating_add(amount);
        } else if entry.path == "heap-allocated" {
            self.heap_allocated = Some(amount);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_complaint_is_a_sentence() {
        let verdict = |unclassified, doubles, wrong| Verdict {
            is_incomplete: false,
            unclassified,
            doubles,
            wrong,
        };
        let incomplete = Verdict { is_incomplete: true, ..verdict(4.9, 0, 0) };
        let table: [(Verdict, &[&str]); 5] = [
            (
                incomplete,
                &["reporters were missed, so up to 4.90 % of the heap may be unclassified"],
            ),
            (verdict(4.9, 0, 0), &[]),
            (verdict(5.126, 0, 0), &["5.13 % of the heap is unclassified, and at most 5 % may be"]),
            (
                verdict(0.0, 1, 2),
                &["1 block reported twice", "2 reports of memory that is not a whole block"],
            ),
            (verdict(-3.0, 7, 0), &["7 blocks reported twice"]),
        ];
        for (verdict, expected) in table {
            assert_eq!(verdict.complaints(5.0), expected);
        }
    }

    /// Returns a report with these entries, each a path, a kind and an amount.
    fn report(entries: &[(&str, u8, i64)]) -> Vec<u8> {
        let entry = |&(path, kind, amount): &(&str, u8, i64)| {
            serde_json::json!({ "process": "p", "path": path, "kind": kind, "units": 0,
                                "amount": amount, "description": "d." })
        };
        let reports: Vec<_> = entries.iter().map(entry).collect();
        let file = serde_json::json!({ "version": 1, "hasMozMallocUsableSize": true,
                                       "reports": reports });
        file.to_string().into_bytes()
    }

    const REPORT: [(&str, u8, i64); 5] = [
        ("explicit/cache", 1, 500),
        ("explicit/pool", 1, 100),
        ("explicit/stacks", 0, 200),
        ("heap-allocated", 2, 800),
        ("resident", 2, 9000),
    ];

    #[test]
    fn the_unreported_share_is_of_the_heap_or_of_explicit() {
        let file = report(&REPORT);
        let share = unclassified_percent(&mut &*file).unwrap();
        assert_eq!(share, UnreportedShare { percent: 25.0, is_incomplete: false });
        let sums = HeapSums::read(&mut &*file).unwrap();
        assert_eq!((sums.unclassified(), sums.share()), (Some(200), Some(20.0)));
        assert!(!sums.is_incomplete() && sums.notes().is_empty());
    }

    #[test]
    fn amounts_of_any_size_are_added_up() {
        let most = i64::MAX;
        let file = report(&[
            ("explicit/a", 1, most),
            ("explicit/b", 1, most),
            ("explicit/c", 0, most),
            ("heap-allocated", 2, -most),
        ]);
        let sums = HeapSums::read(&mut &*file).unwrap();
        assert_eq!(sums.unclassified(), Some(i64::MIN));
        assert!(sums.share().is_some_and(f64::is_finite));
    }

    #[test]
    fn a_report_may_lack_reporters_or_the_heap() {
        let missed = [&REPORT[..], &[(HEAP_UNCLASSIFIED_OR_MISSED, 1, 200)]].concat();
        let file = report(&missed);
        let share = unclassified_percent(&mut &*file).unwrap();
        assert_eq!(share, UnreportedShare { percent: 25.0, is_incomplete: true });
        let sums = HeapSums::read(&mut &*file).unwrap();
        assert!(sums.is_incomplete());
        assert_eq!(sums.unclassified(), Some(200));

        let file = report(&REPORT[..3]);
        let share = unclassified_percent(&mut &*file).unwrap();
        assert_eq!(share, UnreportedShare { percent: 0.0, is_incomplete: false });
        let sums = HeapSums::read(&mut &*file).unwrap();
        assert_eq!((sums.unclassified(), sums.share()), (None, None));
    }
}
