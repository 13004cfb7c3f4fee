//! Defines reporters and the collector of their reports.

use std::cell::RefCell;
use std::collections::HashMap;

use super::missed::{Missed, MissedReason};
use super::timeout::Progress;
use crate::measure::measured::Measured;
use crate::measure::ops::{Collection, measure_with};
use crate::measure::size_of::MallocSizeOf;
use crate::report::{Kind, Report};

/// A reporter of measurements. Functions and closures are reporters too.
///
/// A reporter must not wait for a lock, whose holder may be waiting for the reports. Measuring a
/// `Mutex` or another lock tries to lock it, again and again for a limited time. If that fails, the
/// snapshot names it in [`Snapshot::missed`](crate::Snapshot::missed). A reporter that tries locks
/// itself calls [`Reports::missed`].
pub trait Reporter: Send + Sync {
    /// Makes this reporter's reports.
    fn collect(&self, reports: &mut Reports<'_>);
}

impl<F: Fn(&mut Reports<'_>) + Send + Sync> Reporter for F {
    fn collect(&self, reports: &mut Reports<'_>) {
        self(reports);
    }
}

/// The reports of a collection, to which a reporter adds its own.
#[derive(Debug)]
pub struct Reports<'c> {
    pub(crate) collection: &'c Collection<'c>,
    pub(crate) paths: &'c ReporterPaths,
    pub(crate) progress: &'c Progress,
    pub(crate) anonymize: bool,
    pub(crate) gathered: Gathered,
}

/// The reports and notes of one or more reporters.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) reports: Vec<Report>,
    pub(crate) notes: Vec<String>,
    pub(crate) missed: Vec<Missed>,
    /// The paths at which reporters were asked to report. Viewers keep them in sight.
    pub(crate) reporters: Vec<String>,
    /// Bytes reported as heap without having been measured.
    pub(crate) unmeasured: i64,
}

impl Gathered {
    /// The most reports of a reporter for which their paths are kept in sight. With more, a
    /// reporter lists what it has, such as its connections.
    const MOST_PATHS_OF_REPORTER: usize = 16;

    /// The most paths that are kept in sight.
    const MOST_PATHS: usize = 1000;

    /// Adds what one reporter gathered.
    pub(crate) fn add(&mut self, own: Gathered) {
        self.reports.extend(own.reports);
        self.notes.extend(own.notes);
        self.missed.extend(own.missed);
        self.unmeasured += own.unmeasured;
        if own.reporters.len() <= Self::MOST_PATHS_OF_REPORTER {
            let room = Self::MOST_PATHS.saturating_sub(self.reporters.len());
            self.reporters.extend(own.reporters.into_iter().take(room));
        }
    }

    /// Notes a path of the reporter that runs. One too many tells `add` that it has more.
    fn note_path(&mut self, path: &str) {
        if self.reporters.len() <= Self::MOST_PATHS_OF_REPORTER {
            self.reporters.push(path.to_owned());
        }
    }
}

impl Reports<'_> {
    /// Measures the heap that `value` owns, and reports it at `path` with the kind `HEAP`. Returns
    /// the measurement.
    ///
    /// Named parts of its type are reported below `path`. The remaining bytes are then at
    /// `path/other`.
    pub fn measure<T: ?Sized + MallocSizeOf>(
        &mut self,
        path: impl Into<String>,
        value: &T,
        description: &'static str,
    ) -> Measured {
        let path = path.into();
        self.collection.set_claimant(self.paths.number(&path));
        let measured = measure_with(self.collection, value, T::add_size_of_excluding_this);
        self.gathered.unmeasured += amount(measured.computed);
        self.note_limits(&path, &measured);
        self.note_inferred(&path, measured.inferred);
        self.gathered.note_path(&path);
        self.report_parts(path, &measured, description);
        measured
    }

    /// Adds a report that was obtained by other means. DMD cannot check such heap bytes block by
    /// block.
    pub fn add(&mut self, report: Report) {
        if report.kind == Kind::Heap && report.path.starts_with("explicit/") {
            self.gathered.unmeasured += report.amount;
        }
        self.gathered.note_path(&report.path);
        self.gathered.reports.push(report);
    }

    /// Adds a report of bytes whose blocks the tracker attributes by their allocation.
    pub(crate) fn add_counted(&mut self, report: Report) {
        self.gathered.reports.push(report);
    }

    /// Adds a report whose blocks were claimed, or are not on the heap.
    #[cfg(all(feature = "c-api", unix))]
    pub(crate) fn add_measured(&mut self, report: Report) {
        self.gathered.note_path(&report.path);
        self.gathered.reports.push(report);
    }

    /// Returns whether the reporter must replace private words in paths, such as addresses and file
    /// names. Replace them by `<anonymized>` or the like.
    #[must_use]
    pub fn anonymize(&self) -> bool {
        self.anonymize
    }

    /// Marks this path as missing or too small, because a lock of its values was held. The snapshot
    /// is then incomplete.
    pub fn missed(&mut self, path: impl Into<String>) {
        self.gathered.missed.push(Missed::new(path, MissedReason::Locked));
    }

    /// Adds a sentence to the notes of the snapshot, for what numbers cannot express.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.gathered.notes.push(sentence.into());
    }

    fn note_limits(&mut self, path: &str, measured: &Measured) {
        if measured.busy > 0 {
            self.missed(path);
            self.note(format!(
                "{path}: {} locked by somebody else and left out",
                count(measured.busy, "value was", "values were")
            ));
        }
        if measured.computed > 0 && self.collection.has_usable_sizes() {
            self.note(format!(
                "{path}: {} bytes come from a formula, not from the allocator",
                measured.computed
            ));
        }
    }

    /// Notes values whose blocks only a tracker finds, if there is none.
    fn note_inferred(&mut self, path: &str, values: usize) {
        if values > 0 && self.collection.recorder().is_none() {
            self.note(format!(
                "{path}: {} measured by following pointers, which DMD does while it tracks the heap; left out",
                count(values, "value is", "values are")
            ));
        }
    }

    fn report_parts(&mut self, path: String, measured: &Measured, description: &'static str) {
        // What the tracker infers is reported below the path.
        let is_node = measured.inferred > 0 && self.collection.recorder().is_some();
        if measured.parts.is_empty() && !is_node {
            return self.add_counted(Report::heap(path, amount(measured.bytes), description));
        }
        let in_parts: usize = measured.parts.iter().map(|part| part.bytes).sum();
        for part in &measured.parts {
            // A node of a tree is no report: the remaining bytes of a part with parts are a leaf
            // beside them.
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
        if rest > 0 || measured.parts.is_empty() {
            self.add_counted(Report::heap(format!("{path}/other"), amount(rest), description));
        }
    }
}

/// The paths of reporters, numbered from 1 in the order of their first claim; 0 is none.
#[derive(Debug, Default)]
pub(crate) struct ReporterPaths {
    numbers: RefCell<HashMap<String, u32>>,
}

impl ReporterPaths {
    pub(crate) fn number(&self, path: &str) -> u32 {
        let mut numbers = self.numbers.borrow_mut();
        if let Some(number) = numbers.get(path) {
            return *number;
        }
        let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
        numbers.insert(path.to_owned(), next);
        next
    }

    /// Returns all paths, in the order of their numbers.
    pub(crate) fn into_paths(self) -> Vec<String> {
        let mut numbered: Vec<_> = self.numbers.into_inner().into_iter().collect();
        numbered.sort_unstable_by_key(|(_, number)| *number);
        numbered.into_iter().map(|(path, _)| path).collect()
    }
}

/// Converts bytes into a report's amount.
pub(crate) fn amount(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Formats a number with the words that follow it.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
