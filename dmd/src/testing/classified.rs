//! A check of a whole program: the unreported share of its heap, double reports and wrong reports.

use std::fmt::Write as _;

use memreport::snapshot::HEAP_UNCLASSIFIED_OR_MISSED;
use memreport::{Kind, Missed, Snapshot, Units};

use super::explained::{self, Listed};
use super::limits::{Limits, percent_of};
use super::own_lines;
use super::tracked::NOT_TRACKED;
use crate::collect::findings::Group;
use crate::collect::{Dump, Sum, Summary};

/// The unreported part of a program's heap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unclassified {
    /// The bytes of `heap-unclassified` as a viewer shows it: `heap-allocated` minus the `HEAP`
    /// reports under `explicit/`.
    pub bytes: i64,
    /// The same as a percentage of `heap-allocated`.
    pub percent: f64,
    /// DMD's sums, computed from the blocks.
    pub summary: Summary,
}

/// Returns the unreported part of the heap in a snapshot; `None` if DMD was asleep.
#[must_use]
pub fn unclassified(snapshot: &Snapshot) -> Option<Unclassified> {
    let summary = Dump::of(snapshot)?.summary();
    let is_counted = |report: &&memreport::Report| {
        report.kind == Kind::Heap
            && report.units == Units::Bytes
            && report.process.is_empty()
            && report.path.starts_with("explicit/")
            && report.path != HEAP_UNCLASSIFIED_OR_MISSED
    };
    let reported: i64 =
        snapshot.reports.iter().filter(is_counted).map(|report| report.amount).sum();
    let allocated = summary.heap_allocated + summary.reported_transient;
    let allocated = i64::try_from(allocated).unwrap_or(i64::MAX);
    let bytes = allocated - reported;
    let percent = percent_of(bytes, summary.heap_allocated);
    Some(Unclassified { bytes, percent, summary })
}

/// Takes a snapshot, and asserts that the reporters cover the heap of the whole program.
///
/// In a test, the harness and other tests own a part of the heap: use [`Baseline`](super::Baseline)
/// there. `limits` is a share in percent, or [`Limits`].
///
/// ```no_run
/// dmd::global_allocator!();
///
/// # fn main() {
/// // At most 5 % of the heap is unreported, and nothing is reported twice or wrongly.
/// dmd::testing::assert_classified(5.0);
/// # }
/// ```
///
/// # Panics
///
/// If a limit is exceeded, or a block is reported twice or wrongly; the message lists the blocks.
/// Also if the program does not declare DMD's allocator.
#[track_caller]
pub fn assert_classified(limits: impl Into<Limits>) {
    let snapshot = memreport::snapshot();
    let (Some(found), Some(dump)) = (unclassified(&snapshot), Dump::of(&snapshot)) else {
        panic!("{NOT_TRACKED}")
    };
    let missed: Vec<_> = snapshot.missed().iter().map(Missed::to_string).collect();
    assert!(missed.is_empty(), "the snapshot is incomplete: it misses {}", missed.join(", "));
    let checked = Checked { of: "the heap", bytes: found.bytes };
    let text = failures(&checked, dump, limits.into());
    assert!(text.is_empty(), "{text}");
}

/// The bytes that a check limits.
pub(super) struct Checked {
    /// The memory that they belong to.
    of: &'static str,
    /// The unreported bytes.
    bytes: i64,
}

impl Checked {
    /// The blocks of a restricted collection.
    pub(super) fn since_baseline(dump: &Dump) -> Self {
        let bytes = i64::try_from(dump.summary().unreported.bytes).unwrap_or(i64::MAX);
        Checked { of: "what was allocated since the baseline", bytes }
    }

    /// Returns whether the check holds, without the text.
    pub(super) fn is_within(&self, limits: Limits, dump: &Dump) -> bool {
        let summary = dump.summary();
        let is_wrong = summary.twice.blocks > 0 || !dump.contents.wrong.is_empty();
        !is_wrong && limits.exceeded(self.bytes, &summary).is_none()
    }
}

/// Returns the text of a failed check; empty if it holds.
pub(super) fn failures(checked: &Checked, dump: &Dump, limits: Limits) -> String {
    let Checked { of, bytes } = *checked;
    let summary = dump.summary();
    let mut text = String::new();
    if let Some(limit) = limits.exceeded(bytes, &summary) {
        let all = summary.heap_allocated;
        let percent = percent_of(bytes, all);
        let _ = writeln!(
            text,
            "{percent:.2} % of {of} is not reported ({bytes} of {all} bytes), and at most {limit} may be:"
        );
        let Sum { blocks, bytes: listed } = summary.unreported;
        if i64::try_from(listed).is_ok_and(|listed| listed != bytes) {
            let _ = writeln!(
                text,
                "  {listed} bytes in {blocks} blocks without a report, and {} bytes of other differences",
                i128::from(bytes) - listed as i128
            );
        }
        if !explained::write(dump, Listed::Unreported, &mut text) {
            list(&mut text, dump, |group| group.reports.is_empty());
        }
    }
    if summary.twice.blocks > 0 {
        let _ = writeln!(
            text,
            "{} bytes in {} blocks are reported twice:",
            summary.twice.bytes, summary.twice.blocks
        );
        if !explained::write(dump, Listed::Twice, &mut text) {
            list(&mut text, dump, |group| group.reports.len() > 1);
        }
    }
    for wrong in dump.wrong_reports() {
        let _ = writeln!(text, "{wrong}");
    }
    text.truncate(text.trim_end().len());
    text
}

/// The maximum number of groups that an error lists.
const LISTED: usize = 10;

/// Writes the groups with the most bytes, and their stacks.
fn list(text: &mut String, dump: &Dump, wanted: impl Fn(&Group<'_>) -> bool) {
    let bytes = |group: &Group<'_>| group.key.usable as u64 * group.count;
    let mut groups: Vec<_> = dump.groups().filter(wanted).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(bytes(group)));
    for group in groups.iter().take(LISTED) {
        let blocks = if group.count == 1 { "block" } else { "blocks" };
        let _ = writeln!(
            text,
            "  {} bytes in {} {blocks} of {}",
            bytes(group),
            group.count,
            group.key.usable
        );
        for report in &group.reports {
            let _ = writeln!(text, "    reported by {}", report.describe());
        }
        match Dump::stack(group.key.site) {
            Some(stack) => {
                for line in own_lines::of_stack(stack) {
                    let _ = writeln!(text, "    {line}");
                }
            }
            None => text.push_str(
                "    start the program with DMD=--stacks=full to see where they were allocated\n",
            ),
        }
    }
    if groups.len() > LISTED {
        let rest: u64 = groups.iter().skip(LISTED).map(bytes).sum();
        let _ = writeln!(text, "  {rest} bytes in {} more groups", groups.len() - LISTED);
    }
}
