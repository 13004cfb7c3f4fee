//! Reduces the number of reports and keeps their sums: the smallest are merged by branch.

use std::collections::BTreeMap;

use super::HEAP_UNCLASSIFIED_OR_MISSED;
use crate::report::{Report, Units};

/// Returns the `most` largest reports, and the sums of the others by their first two segments.
pub(super) fn bound(reports: &[Report], most: usize) -> Vec<Report> {
    let mut order: Vec<usize> = (0..reports.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(weight(&reports[*place])));
    let mut kept = vec![false; reports.len()];
    for place in order.iter().take(most) {
        kept[*place] = true;
    }
    let mut bounded = Vec::new();
    let mut rest: BTreeMap<(String, &str, u8), Report> = BTreeMap::new();
    for (report, kept) in reports.iter().zip(kept) {
        if kept {
            bounded.push(report.clone());
            continue;
        }
        let path = format!("{}/(smaller reports)", branch(&report.path));
        let key = (path.clone(), &*report.process, report.kind as u8);
        let sum = rest.entry(key).or_insert_with(|| Report {
            path,
            amount: 0,
            description: "Reports too small to stand alone in a file of bounded size.".into(),
            ..report.clone()
        });
        sum.amount = sum.amount.saturating_add(report.amount);
    }
    bounded.extend(rest.into_values());
    bounded
}

/// Returns the rank of a report. Reports outside trees and amounts other than bytes, which cannot
/// be added up, come first and are always kept.
fn weight(report: &Report) -> u64 {
    let can_be_added = report.units == Units::Bytes
        && report.path.contains('/')
        && report.path != HEAP_UNCLASSIFIED_OR_MISSED;
    if can_be_added { report.amount.unsigned_abs() } else { u64::MAX }
}

/// Returns the first two segments of a path.
fn branch(path: &str) -> &str {
    let second = path.match_indices('/').nth(1);
    second.map_or_else(
        || path.rsplit_once('/').map_or(path, |(tree, _)| tree),
        |(end, _)| &path[..end],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_stay_and_the_biggest_too() {
        let mut reports: Vec<_> = (1..=100)
            .map(|size| Report::heap(format!("explicit/cache/entry-{size}"), size, "An entry."))
            .collect();
        reports.push(Report::heap("explicit/small", 3, "Small."));
        reports.push(Report::other("resident", 1, "Resident."));
        reports.push(Report::count("entries/all", 100, "Entries."));
        let bounded = bound(&reports, 12);
        let sum = |reports: &[Report], tree: &str| -> i64 {
            reports.iter().filter(|report| report.path.starts_with(tree)).map(|r| r.amount).sum()
        };
        assert_eq!(sum(&bounded, "explicit/"), sum(&reports, "explicit/"));
        assert_eq!(sum(&bounded, "explicit/cache"), sum(&reports, "explicit/cache"));
        assert_eq!(bounded.len(), 14);
        let has = |path: &str| bounded.iter().any(|report| report.path == path);
        assert!(has("resident") && has("entries/all") && has("explicit/cache/entry-100"));
        assert!(has("explicit/cache/(smaller reports)") && has("explicit/(smaller reports)"));
        assert_eq!(bound(&reports, 1000).len(), reports.len());
    }
}
