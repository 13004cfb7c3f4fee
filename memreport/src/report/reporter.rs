//! Those who report: what a reporter is, and what it is handed to report to.

use std::cell::RefCell;
use std::collections::HashMap;

use super::timeout::Progress;
use crate::measure::measured::Measured;
use crate::measure::ops::{Collection, measure_with};
use crate::measure::size_of::MallocSizeOf;
use crate::report::{Kind, Report};

/// Reports measurements when asked. Functions and closures are reporters too.
///
/// A reporter must not wait for a lock: whoever holds it may be waiting for the reports. `Mutex` and the other locks of std
/// are tried when they are measured, and reported as busy.
pub trait Reporter: Send + Sync {
    /// Makes this reporter's reports.
    fn collect(&self, reports: &mut Reports<'_>);
}

impl<F: Fn(&mut Reports<'_>) + Send + Sync> Reporter for F {
    fn collect(&self, reports: &mut Reports<'_>) {
        self(reports);
    }
}

/// What a reporter reports to.
#[derive(Debug)]
pub struct Reports<'c> {
    pub(crate) collection: &'c Collection<'c>,
    pub(crate) names: &'c Names,
    pub(crate) progress: &'c Progress,
    pub(crate) anonymize: bool,
    pub(crate) gathered: Gathered,
}

/// What one or more reporters have said.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) reports: Vec<Report>,
    pub(crate) notes: Vec<String>,
    /// Bytes reported as heap without having been measured.
    pub(crate) unmeasured: i64,
}

impl Reports<'_> {
    /// Measures the heap that `value` owns and reports it at `path`, of kind `HEAP`.
    ///
    /// Parts that its type names are reported below `path`; what belongs to no part is then at `path/other`.
    pub fn measure<T: ?Sized + MallocSizeOf>(
        &mut self,
        path: impl Into<String>,
        value: &T,
        description: &'static str,
    ) -> Measured {
        let path = path.into();
        self.collection.set_reporter(self.names.number(&path));
        let measured = measure_with(self.collection, value, T::add_size_of_excluding_this);
        self.gathered.unmeasured += amount(measured.computed);
        self.note_limits(&path, &measured);
        self.report_parts(path, &measured, description);
        measured
    }

    /// Reports what was found out by other means. Heap bytes reported so are not checked block by block.
    pub fn add(&mut self, report: Report) {
        if report.kind == Kind::Heap && report.path.starts_with("explicit/") {
            self.gathered.unmeasured += report.amount;
        }
        self.gathered.reports.push(report);
    }

    /// As [`add`](Self::add), for bytes whose blocks the tracker knows by their allocation.
    pub(crate) fn add_counted(&mut self, report: Report) {
        self.gathered.reports.push(report);
    }

    /// Whether private words in paths, such as addresses and names of files, are to be replaced, as by `<anonymized>`.
    #[must_use]
    pub fn anonymize(&self) -> bool {
        self.anonymize
    }

    /// Says something about the reports that numbers cannot: one sentence.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.gathered.notes.push(sentence.into());
    }

    fn note_limits(&mut self, path: &str, measured: &Measured) {
        if measured.busy > 0 {
            self.note(format!(
                "{path}: {} locked by somebody else and left out",
                count(measured.busy, "value was", "values were")
            ));
        }
        if measured.computed > 0 && self.collection.asks() {
            self.note(format!(
                "{path}: {} bytes come from a formula, not from the allocator",
                measured.computed
            ));
        }
    }

    fn report_parts(&mut self, path: String, measured: &Measured, description: &'static str) {
        if measured.parts.is_empty() {
            return self.add_counted(Report::heap(path, amount(measured.bytes), description));
        }
        let in_parts: usize = measured.parts.iter().map(|part| part.bytes).sum();
        for part in &measured.parts {
            // A node of a tree is not a report: what a part with parts of its own has left is a leaf beside them.
            let below = format!("{}/", part.path);
            let is_node = measured.parts.iter().any(|other| other.path.starts_with(&below));
            let leaf = if is_node { "/other" } else { "" };
            self.add_counted(Report::heap(
                format!("{path}/{}{leaf}", part.path),
                amount(part.bytes),
                part.description,
            ));
        }
        let rest = measured.bytes - in_parts;
        if rest > 0 {
            self.add_counted(Report::heap(format!("{path}/other"), amount(rest), description));
        }
    }
}

/// Reporters by path, numbered from 1 in the order of their first claim; 0 is nobody.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: RefCell<HashMap<String, u32>>,
}

impl Names {
    pub(crate) fn number(&self, path: &str) -> u32 {
        let mut numbers = self.numbers.borrow_mut();
        if let Some(number) = numbers.get(path) {
            return *number;
        }
        let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
        numbers.insert(path.to_owned(), next);
        next
    }

    /// All paths; the first is number 1.
    pub(crate) fn into_list(self) -> Vec<String> {
        let mut numbered: Vec<_> = self.numbers.into_inner().into_iter().collect();
        numbered.sort_unstable_by_key(|(_, number)| *number);
        numbered.into_iter().map(|(path, _)| path).collect()
    }
}

/// Bytes as a report's amount.
pub(crate) fn amount(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
