//! Takes a snapshot: runs every reporter and gathers the reports.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, SystemTime};

use crate::allocator::counters::HeapWatch;
use crate::allocator::declaration::{is_declared, tracker};
use crate::allocator::size_source::SizeSource;
use crate::event::listeners;
use crate::event::mark::mark_with;
use crate::event::on_alloc::as_own;
use crate::field::skipped_fields;
use crate::measure::ops::Collection;
use crate::process::environment::asks_to_anonymize;
use crate::process::{self, Heap};
use crate::report::reporter::{Gathered, ReporterPaths, Reports, amount};
use crate::report::timeout::Progress;
use crate::report::turn::Turn;
use crate::report::{Kind, Report};
use crate::report::{by_origin, registry};
use crate::snapshot::{HEAP_UNCLASSIFIED_OR_MISSED, Snapshot};
use crate::tracker::Tracker;
use crate::tracker::attribution::{Attributed, AttributedBy};
use crate::tracker::findings::{Ending, Findings};
use crate::tracker::recorder::Recorder;

const C_HEAP_DESCRIPTION: &str = "Blocks of C's malloc that no reporter claims, by the library and the function that requested \
                                  them. A function of the C library counts for its caller.";

const INFERRED_DESCRIPTION: &str = "Blocks that pointers lead to from values of a type that cannot be measured, and that no reporter measures. Inferred: \
                                    the values need not own all of them.";

/// The time for which a collection waits for locks.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs all reporters and gathers their reports.
///
/// # Panics
///
/// Panics if a reporter calls it, because collections do not nest.
#[must_use]
pub fn snapshot() -> Snapshot {
    Collector::default().snapshot()
}

/// The options of a collection.
///
/// ```
/// let snapshot = memreport::Collector::default().anonymize().snapshot();
/// # assert!(!snapshot.reports.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Collector {
    anonymize: bool,
    quick: bool,
    timeout: Option<Duration>,
    moment: Option<Cow<'static, str>>,
}

impl Collector {
    /// Makes reporters leave private words out of their paths.
    ///
    /// If the environment variable `MEMREPORT_ANONYMIZE` is set, every collection of the process
    /// does so.
    #[must_use]
    pub fn anonymize(mut self) -> Self {
        self.anonymize = true;
        self
    }

    /// Leaves out figures for which the system or the allocator counts: resident memory by kind,
    /// stacks, and the allocator's statistics. Reporters and single figures of the process remain.
    ///
    /// The system counts pages in some 5 ms for each resident gigabyte. glibc counts free chunks in
    /// some 50 ns each, and threads that allocate wait for it.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.quick = true;
        self
    }

    /// Sets the time for which all measurements together wait for locks that other threads hold:
    /// 0.2 seconds by default. Values that stay locked are in [`Snapshot::missed`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Names the moment of the program, such as "after the index was built".
    #[must_use]
    pub fn moment(mut self, moment: impl Into<Cow<'static, str>>) -> Self {
        self.moment = Some(moment.into());
        self
    }

    /// Runs all reporters and gathers their reports. Waits for collections of other threads, which
    /// take turns in the order in which they were begun.
    ///
    /// # Panics
    ///
    /// Panics if a reporter calls it, because collections do not nest.
    #[must_use]
    pub fn snapshot(self) -> Snapshot {
        // Before it waits: a reporter's own collection has the turn.
        let nested = NestingGuard::enter();
        process::prepare();
        let turn = Turn::wait();
        drop(nested);
        self.in_turn(turn, &Progress::default())
    }

    /// Takes the snapshot and publishes its progress. If it is abandoned, the result is of no use.
    pub(crate) fn in_turn(mut self, _turn: Turn, progress: &Progress) -> Snapshot {
        let _nested = NestingGuard::enter();
        self.anonymize |= asks_to_anonymize();
        let moment = self.take_moment();
        // Read first: the collection itself allocates.
        let heap = self.heap();
        match tracker().filter(|tracker| tracker.is_awake()) {
            Some(tracker) => self.tracked(tracker, (moment, heap), progress),
            None => self.untracked(SizeSource::declared(), (moment, heap), progress),
        }
    }

    /// Takes the snapshot while another collection runs. No claims are recorded.
    pub(crate) fn concurrent(mut self, progress: &Progress) -> Snapshot {
        let _nested = NestingGuard::enter();
        self.anonymize |= asks_to_anonymize();
        let moment = self.take_moment();
        let heap = self.heap();
        let sizes = tracker()
            .filter(|tracker| tracker.is_awake())
            .map_or_else(SizeSource::declared, SizeSource::Table);
        self.untracked(sizes, (moment, heap), progress)
    }

    fn take_moment(&mut self) -> Cow<'static, str> {
        self.moment.take().unwrap_or(Cow::Borrowed("requested by the program"))
    }

    fn heap(&self) -> Heap {
        if self.quick { Heap::default() } else { Heap::read() }
    }

    fn untracked(
        &self,
        sizes: SizeSource,
        (moment, heap): (Cow<'static, str>, Heap),
        progress: &Progress,
    ) -> Snapshot {
        // Read first: the collection itself allocates.
        let watch = is_declared().then(HeapWatch::begin);
        let (mut gathered, _) = self.gather(sizes, None, progress);
        by_origin::note_missing(&mut gathered);
        let heap_allocated = watch.map(|watch| watch.at_begin().live_bytes());
        if let Some((watch, heap)) = watch.zip(heap_allocated) {
            gathered.notes.extend(note_of_growth(heap, watch.growth()));
        }
        if let Some(bytes) = heap_allocated {
            add_heap(usize::try_from(bytes).unwrap_or(usize::MAX), &mut gathered);
        }
        heap.report(heap_allocated.unwrap_or(0), &mut gathered.reports);
        self.finished(gathered, (moment, heap.allocator()), None)
    }

    fn tracked(
        &self,
        tracker: &'static dyn Tracker,
        (moment, heap): (Cow<'static, str>, Heap),
        progress: &Progress,
    ) -> Snapshot {
        let recording = tracker.begin();
        let watch = HeapWatch::begin();
        let (mut gathered, paths) =
            self.gather(SizeSource::Table(tracker), Some(recording.recorder()), progress);
        if progress.is_abandoned() {
            return self.finished(gathered, (moment, heap.allocator()), None);
        }
        // With every block in the table, `heap-allocated` is of the blocks that are measured.
        let has_every_block = tracker.tracks_every_block();
        if !has_every_block {
            gathered.notes.extend(note_of_growth(watch.at_begin().live_bytes(), watch.growth()));
        }
        let reporters = paths.into_paths();
        let findings = recording.finish(Ending {
            reporters: &reporters,
            unmeasured: gathered.unmeasured,
            moment: &moment,
        });
        if has_every_block {
            let (before, now) = (watch.at_begin().live_bytes(), findings.heap_allocated());
            gathered.notes.extend(note_of_replaced(before, now as u64, watch.freed()));
        }
        findings.attributed(&mut |attributed| add_attributed(attributed, &mut gathered));
        findings.attribution_notes(&mut |note| gathered.notes.push(note.to_owned()));
        add_heap(findings.heap_allocated(), &mut gathered);
        heap.report(findings.heap_allocated() as u64, &mut gathered.reports);
        tracker.own_memory(&mut |path, bytes, description| {
            gathered.reports.push(Report::non_heap(path, amount(bytes), description));
        });
        self.finished(gathered, (moment, heap.allocator()), Some(findings))
    }

    fn finished(
        &self,
        gathered: Gathered,
        (moment, allocator): (Cow<'static, str>, Option<&'static str>),
        findings: Option<Box<dyn Findings>>,
    ) -> Snapshot {
        let (events, panics) = as_own(listeners::last_events);
        let mut notes = gathered.notes;
        notes.extend(panics);
        // The text is retained for recordings. It belongs to the tracker, like the list that
        // contains it.
        mark_with(|| format!("report: {moment}").into());
        Snapshot {
            reports: gathered.reports,
            notes,
            has_usable_sizes: is_declared(),
            skipped: skipped_fields(),
            moment,
            time: SystemTime::now(),
            allocator,
            events,
            is_anonymized: self.anonymize,
            missed: gathered.missed,
            reporters: gathered.reporters,
            findings,
        }
    }

    fn gather(
        &self,
        sizes: SizeSource,
        recorder: Option<&dyn Recorder>,
        progress: &Progress,
    ) -> (Gathered, ReporterPaths) {
        let collection =
            Collection::new(sizes, recorder).wait_for_locks(self.timeout.unwrap_or(LOCK_TIMEOUT));
        let paths = ReporterPaths::default();
        let mut reports = Reports {
            collection: &collection,
            paths: &paths,
            progress,
            anonymize: self.anonymize,
            gathered: Gathered::default(),
        };
        registry::run_all(&mut reports);
        let mut gathered = reports.gathered;
        process::report(&mut gathered);
        if !self.quick {
            process::report_mappings(&mut gathered, self.anonymize);
        }
        (gathered, paths)
    }
}

/// Adds a report of blocks that the tracker has attributed.
fn add_attributed(attributed: Attributed<'_>, gathered: &mut Gathered) {
    let Attributed { path, bytes, by } = attributed;
    let description = match by {
        AttributedBy::Origin(reporter) => return by_origin::report(reporter, bytes, gathered),
        AttributedBy::CHeap => C_HEAP_DESCRIPTION,
        AttributedBy::Field(_) => INFERRED_DESCRIPTION,
    };
    gathered.reports.push(Report::heap(path.to_owned(), amount(bytes), description));
}

/// Adds the bytes of the whole heap. If some reporter was missed, also adds the bytes that no
/// report names, so that no viewer takes them for unclassified.
fn add_heap(bytes: usize, gathered: &mut Gathered) {
    let reports = &mut gathered.reports;
    reports.push(Report::other(
        "heap-allocated",
        amount(bytes),
        "Memory in blocks that the heap allocator has handed out. It may exceed what the program requested, since the \
         allocator rounds requests up.",
    ));
    if gathered.missed.is_empty() {
        return;
    }
    let is_counted = |report: &&Report| {
        report.kind == Kind::Heap
            && report.process.is_empty()
            && report.path.starts_with("explicit/")
    };
    let reported: i64 = reports.iter().filter(is_counted).map(|report| report.amount).sum();
    reports.push(Report::heap(
        HEAP_UNCLASSIFIED_OR_MISSED,
        amount(bytes) - reported,
        "What the allocator has handed out beyond what the HEAP reports of this tree name. The snapshot is incomplete: \
         it misses some reporters, whose memory is in this number.",
    ));
}

/// Returns a note of how many bytes other threads have changed the heap since `heap-allocated` was
/// read. Returns `None` up to 0.5 % of it.
fn note_of_growth(heap: u64, growth: i64) -> Option<String> {
    let bytes = growth.unsigned_abs();
    let verb = if growth.is_negative() { "shrank" } else { "grew" };
    (bytes >= LEAST_GROWTH && bytes > heap / 200).then(|| {
        format!(
            "the heap {verb} by {} during the collection, so heap-unclassified may be off by as much",
            megabytes(bytes)
        )
    })
}

/// Returns a note of how many bytes `heap-allocated` is below the heap at the beginning, because
/// other threads have freed blocks since. Returns `None` below 0.5 % of it.
fn note_of_replaced(at_begin: u64, heap_allocated: u64, freed: u64) -> Option<String> {
    // The tracker's own blocks are not in heap-allocated either, whether they are freed or not.
    let less = at_begin.saturating_sub(heap_allocated).min(freed);
    (less >= LEAST_GROWTH && less > heap_allocated / 200).then(|| {
        format!(
            "{} were freed during the collection, and are not in heap-allocated, like what was allocated since",
            megabytes(less)
        )
    })
}

/// The smallest change of the heap that is noted.
const LEAST_GROWTH: u64 = 64 * 1024;

/// Formats bytes in megabytes of a million, with two digits: "2.05 MB".
fn megabytes(bytes: u64) -> String {
    let hundredths = bytes.saturating_add(5000) / 10_000;
    format!("{}.{:02} MB", hundredths / 100, hundredths % 100)
}

/// A guard that prevents nested collections on a thread.
struct NestingGuard;

std::thread_local! {
    static IS_COLLECTING: Cell<bool> = const { Cell::new(false) };
}

impl NestingGuard {
    fn enter() -> Self {
        let nested = IS_COLLECTING.try_with(|collecting| collecting.replace(true)).unwrap_or(false);
        assert!(!nested, "a reporter requested a snapshot: collections do not nest");
        NestingGuard
    }
}

impl Drop for NestingGuard {
    fn drop(&mut self) {
        let _ = IS_COLLECTING.try_with(|collecting| collecting.set(false));
    }
}

#[cfg(test)]
mod tests {
    use super::{Collector, note_of_growth, note_of_replaced};

    #[test]
    fn a_moment_is_the_one_that_was_named() {
        assert_eq!(Collector::default().take_moment(), "requested by the program");
        assert_eq!(Collector::default().moment("at noon").take_moment(), "at noon");
    }

    #[test]
    fn growth_is_noted_beyond_64_kib_and_half_a_percent() {
        let table = [
            (0, 65_535, None),
            (0, 65_536, Some("grew by 0.07 MB")),
            (0, -65_536, Some("shrank by 0.07 MB")),
            (20_000_000, 100_000, None),
            (20_000_000, 100_001, Some("grew by 0.10 MB")),
            (20_000_000, -2_000_000, Some("shrank by 2.00 MB")),
            (20_000_000, 0, None),
        ];
        for (heap, growth, expected) in table {
            let expected = expected.map(|change| {
                format!(
                    "the heap {change} during the collection, so heap-unclassified may be off by as much"
                )
            });
            assert_eq!(note_of_growth(heap, growth), expected, "{growth} of {heap}");
        }
    }

    #[test]
    fn replaced_blocks_are_noted_beyond_half_a_percent() {
        assert_eq!(note_of_replaced(10_000_000, 10_100_000, 900_000), None);
        assert_eq!(note_of_replaced(10_040_000, 10_000_000, 900_000), None);
        assert_eq!(note_of_replaced(20_090_000, 20_000_000, 900_000), None);
        assert_eq!(note_of_replaced(30_000_000, 20_000_000, 0), None);
        let note = note_of_replaced(20_110_000, 20_000_000, 900_000).unwrap();
        assert!(note.starts_with("0.11 MB were freed during the collection"), "{note}");
    }
}
