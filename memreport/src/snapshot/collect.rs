//! One collection: every reporter is asked, and what they say becomes a snapshot.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::allocator::counters::totals;
use crate::allocator::declaration::{is_declared, tracker};
use crate::allocator::size_source::SizeSource;
use crate::event::listeners;
use crate::event::mark::mark_with;
use crate::event::on_alloc::as_own;
use crate::field::skipped_fields;
use crate::measure::ops::Collection;
use crate::process::{self, Heap};
use crate::report::Report;
use crate::report::registry;
use crate::report::reporter::{Gathered, Names, Reports, amount};
use crate::report::timeout::Progress;
use crate::snapshot::Snapshot;
use crate::tracker::Tracker;
use crate::tracker::findings::{Ending, Findings};
use crate::tracker::recorder::Recorder;

/// Asks all reporters, and gathers what they say.
///
/// # Panics
///
/// When a reporter calls it: collections do not nest.
#[must_use]
pub fn snapshot() -> Snapshot {
    Collector::default().snapshot()
}

/// A collection with wishes.
///
/// ```
/// let snapshot = memreport::Collector::default().anonymize().snapshot();
/// # assert!(!snapshot.reports.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Collector {
    anonymize: bool,
    quick: bool,
    moment: Option<Cow<'static, str>>,
}

impl Collector {
    /// Reporters are to leave private words out of their paths.
    #[must_use]
    pub fn anonymize(mut self) -> Self {
        self.anonymize = true;
        self
    }

    /// Leaves out what the system and the allocator have to count: resident memory by kind, stacks, what the allocator holds.
    ///
    /// The system counts pages, for some 5 ms for each gigabyte that is resident. glibc counts free chunks, for some 50 ns each,
    /// and threads that allocate wait for it. What is left are the reporters and single figures of the process.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.quick = true;
        self
    }

    /// Says at which moment of the program this is: "after the index was built".
    #[must_use]
    pub fn moment(mut self, moment: impl Into<Cow<'static, str>>) -> Self {
        self.moment = Some(moment.into());
        self
    }

    /// Asks all reporters, and gathers what they say.
    ///
    /// # Panics
    ///
    /// When a reporter calls it: collections do not nest.
    #[must_use]
    pub fn snapshot(self) -> Snapshot {
        self.watched(&Progress::default())
    }

    /// The same, seen from outside.
    pub(crate) fn watched(mut self, progress: &Progress) -> Snapshot {
        let _alone = Alone::enter();
        let moment = self.take_moment();
        // Read first: the collection itself allocates.
        let heap = self.heap();
        match tracker().filter(|tracker| tracker.is_awake()) {
            Some(tracker) => self.tracked(tracker, (moment, heap), progress),
            None => self.untracked(SizeSource::declared(), (moment, heap), progress),
        }
    }

    /// The same, beside another collection that goes on: who reports which block is not recorded.
    pub(crate) fn beside(mut self, progress: &Progress) -> Snapshot {
        let _nested = NotNested::enter();
        let moment = self.take_moment();
        let heap = self.heap();
        let sizes = tracker()
            .filter(|tracker| tracker.is_awake())
            .map_or_else(SizeSource::declared, SizeSource::Table);
        self.untracked(sizes, (moment, heap), progress)
    }

    fn take_moment(&mut self) -> Cow<'static, str> {
        self.moment.take().unwrap_or(Cow::Borrowed("asked for by the program"))
    }

    fn heap(&self) -> Heap {
        if self.quick { Heap::default() } else { Heap::now() }
    }

    fn untracked(
        &self,
        sizes: SizeSource,
        (moment, heap): (Cow<'static, str>, Heap),
        progress: &Progress,
    ) -> Snapshot {
        // Read first: the collection itself allocates.
        let heap_allocated = is_declared().then(|| totals().live_bytes());
        let (mut gathered, _) = self.gather(sizes, None, progress);
        if let Some(bytes) = heap_allocated {
            gathered.reports.push(heap_report(usize::try_from(bytes).unwrap_or(usize::MAX)));
        }
        heap.report(heap_allocated.unwrap_or(0), &mut gathered.reports);
        finished(gathered, (moment, heap.allocator()), None)
    }

    fn tracked(
        &self,
        tracker: &'static dyn Tracker,
        (moment, heap): (Cow<'static, str>, Heap),
        progress: &Progress,
    ) -> Snapshot {
        let recording = tracker.begin();
        let (mut gathered, names) =
            self.gather(SizeSource::Table(tracker), Some(recording.recorder()), progress);
        let reporters = names.into_list();
        let findings = recording.finish(Ending {
            reporters: &reporters,
            unmeasured: gathered.unmeasured,
            moment: &moment,
        });
        gathered.reports.push(heap_report(findings.heap_allocated()));
        heap.report(findings.heap_allocated() as u64, &mut gathered.reports);
        tracker.own_memory(&mut |path, bytes, description| {
            gathered.reports.push(Report::non_heap(path, amount(bytes), description));
        });
        finished(gathered, (moment, heap.allocator()), Some(findings))
    }

    fn gather(
        &self,
        sizes: SizeSource,
        recorder: Option<&dyn Recorder>,
        progress: &Progress,
    ) -> (Gathered, Names) {
        let collection = Collection::new(sizes, recorder);
        let names = Names::default();
        let mut reports = Reports {
            collection: &collection,
            names: &names,
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
        (gathered, names)
    }
}

fn heap_report(bytes: usize) -> Report {
    Report::other(
        "heap-allocated",
        amount(bytes),
        "Memory in blocks that the heap allocator has handed out. It may exceed what the program asked for, since the \
         allocator rounds requests up.",
    )
}

fn finished(
    gathered: Gathered,
    (moment, allocator): (Cow<'static, str>, Option<&'static str>),
    findings: Option<Box<dyn Findings>>,
) -> Snapshot {
    let (events, panics) = as_own(listeners::last);
    let mut notes = gathered.notes;
    notes.extend(panics);
    // The words are kept for recorders, and are no more the program's than the list that they stand in.
    mark_with(|| format!("report: {moment}").into());
    Snapshot {
        reports: gathered.reports,
        notes,
        sizes_asked: is_declared(),
        skipped: skipped_fields(),
        moment,
        time: SystemTime::now(),
        allocator,
        events,
        findings,
    }
}

/// Collections come one after the other.
struct Alone {
    _nested: NotNested,
    _lock: std::sync::MutexGuard<'static, ()>,
}

static COLLECTING: Mutex<()> = Mutex::new(());

impl Alone {
    fn enter() -> Self {
        let nested = NotNested::enter();
        Alone { _nested: nested, _lock: COLLECTING.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// A thread collects once at a time.
struct NotNested;

std::thread_local! {
    static IS_COLLECTING: Cell<bool> = const { Cell::new(false) };
}

impl NotNested {
    fn enter() -> Self {
        let nested = IS_COLLECTING.try_with(|collecting| collecting.replace(true)).unwrap_or(false);
        assert!(!nested, "a reporter asked for a snapshot: collections do not nest");
        NotNested
    }
}

impl Drop for NotNested {
    fn drop(&mut self) {
        let _ = IS_COLLECTING.try_with(|collecting| collecting.set(false));
    }
}
