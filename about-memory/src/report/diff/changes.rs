//! Lists the differences of two files by path, with the amounts of both, the largest first.
//!
//! Like the trees of a file, the list has `explicit/heap-unclassified`, which viewers compute.

use super::{BETWEEN, Matched, Side, check_headers, matched, send, unify};
use crate::report::amount::Amount;
use crate::report::filter::Filter;
use crate::report::numbers::Unit;
use crate::report::page::file_builder::FileBuilder;
use crate::report::report_tree::Presence;
use crate::report::report_tree::node;
use crate::report::tree::Settings;
use hashbrown::HashMap;
use memreport::snapshot::read::{Field, Header};
use std::error::Error;

/// A path whose amount differs.
#[derive(Clone, Debug)]
pub struct Change {
    /// The process, without its number; empty for the process that wrote the files.
    pub process: String,
    /// The path as in the file.
    pub path: String,
    /// The unit of both amounts.
    pub unit: Unit,
    /// The amount in the first file.
    pub before: Amount,
    /// The amount in the second file.
    pub after: Amount,
    /// The files that contain the path.
    pub presence: Presence,
}

/// The path of allocated memory that no report names.
const HEAP_UNCLASSIFIED: &str = "explicit/heap-unclassified";

impl Change {
    /// Makes a change from the amounts of the files that have one.
    fn new(key: &str, unit: Unit, amounts: [Option<&Amount>; 2]) -> Self {
        let (process, path) = key.split_once(BETWEEN).unwrap_or(("", key));
        let presence = match amounts {
            [Some(_), None] => Presence::First,
            [None, Some(_)] => Presence::Second,
            _ => Presence::Both,
        };
        let [before, after] = amounts.map(|amount| amount.cloned().unwrap_or(Amount::Number(0.0)));
        let (process, path) = (process.to_owned(), path.to_owned());
        Change { process, path, unit, before, after, presence }
    }

    /// Returns the increase.
    pub fn difference(&self) -> f64 {
        self.after.number() - self.before.number()
    }
}

/// Returns the differences by path, the largest first.
///
/// # Errors
/// The files contradict each other.
pub(crate) fn changes(
    (mut first, first_header): (Side, &Header),
    (mut second, second_header): (Side, &Header),
    filter: &Filter,
) -> Result<Vec<Change>, Box<dyn Error + Send + Sync>> {
    check_headers(first_header, second_header)?;
    unify(&mut first, &mut second)?;
    let all = matched(&first, &second)?;
    check_trees(&all)?;
    let change = |Matched { before, after }: Matched<'_>| {
        let either = before.or(after)?;
        let amounts = [before, after].map(|sum| sum.map(|sum| &sum.amount));
        Some(Change::new(&either.key, node::unit(&either.units), amounts))
    };
    let mut changes: Vec<Change> = all.into_iter().filter_map(change).collect();
    changes.append(&mut unclassified_changes(&first, &second));
    changes.retain(|change| change.difference() != 0.0 && filter.matches(&change.path));
    changes.sort_by(|a, b| {
        let by_size = b.difference().abs().total_cmp(&a.difference().abs());
        by_size.then_with(|| (&a.process, &a.path).cmp(&(&b.process, &b.path)))
    });
    Ok(changes)
}

/// Checks that the differences can be shown as trees, so that both are refused for the same files.
fn check_trees(all: &[Matched<'_>]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut trees = FileBuilder::new(Filter::All);
    for difference in all.iter().filter_map(|matched| matched.difference()) {
        send(&difference, &mut trees)?;
    }
    trees.finish(None, false, &Settings::default())?;
    Ok(())
}

/// Returns the changes of `heap-unclassified` in processes of which no file reports it.
fn unclassified_changes(first: &Side, second: &Side) -> Vec<Change> {
    let [before, after] = [first, second].map(unclassified);
    let only_after = after.keys().filter(|process| !before.contains_key(*process));
    let keys = before.keys().chain(only_after).map(|process| {
        let key = format!("{process}{BETWEEN}{HEAP_UNCLASSIFIED}");
        (process, key)
    });
    keys.filter(|(_, key)| !first.by_key.contains_key(key) && !second.by_key.contains_key(key))
        .map(|(process, key)| {
            Change::new(&key, Unit::Bytes, [before.get(process), after.get(process)])
        })
        .collect()
}

/// The reports of a process that `heap-unclassified` is computed from.
struct HeapReports {
    allocated: Option<Amount>,
    has_explicit: bool,
    /// The sum of all heap memory below `explicit`.
    heap: Amount,
}

/// Returns `heap-unclassified` of each process that has the reports for it.
fn unclassified(side: &Side) -> HashMap<&str, Amount> {
    let mut by_process: HashMap<&str, HeapReports> = HashMap::new();
    for sum in &side.reports {
        let Some((process, path)) = sum.key.split_once(BETWEEN) else { continue };
        let is_explicit = path.starts_with("explicit/");
        if !is_explicit && path != "heap-allocated" {
            continue;
        }
        let reports = by_process.entry(process).or_insert_with(|| HeapReports {
            allocated: None,
            has_explicit: false,
            heap: Amount::Number(0.0),
        });
        if !is_explicit {
            reports.allocated = Some(sum.amount.clone());
            continue;
        }
        reports.has_explicit = true;
        if sum.kind == Field::Number(1.0) {
            reports.heap.add(&sum.amount);
        }
    }
    let amount = |(process, reports): (_, HeapReports)| {
        let allocated = reports.allocated.filter(|_| reports.has_explicit)?;
        Some((process, allocated.minus(&reports.heap)))
    };
    by_process.into_iter().filter_map(amount).collect()
}
