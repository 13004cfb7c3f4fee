//! Registers reporters at link time and at run time, and runs them all.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::counted_heap;
use super::missed::{Missed, MissedReason};
use super::reporter::{Reporter, Reports};
use super::single_figure;
use super::timeout::ReporterId;
use crate::event::callback::{Registration, panic_message};
use crate::measure::ops::Ops;
use crate::measure::size_of::MallocSizeOf;

/// A reporter that is registered at link time. Made by [`reporter!`](crate::reporter).
#[derive(Clone, Copy)]
pub struct StaticReporter {
    name: &'static str,
    collect: fn(&mut Reports<'_>),
}

impl StaticReporter {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str, collect: fn(&mut Reports<'_>)) -> Self {
        StaticReporter { name, collect }
    }
}

impl fmt::Debug for StaticReporter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("StaticReporter").field(&self.name).finish()
    }
}

inventory::collect!(StaticReporter);

/// Registers a reporter at link time, from any crate of the program.
///
/// Takes a path, a static to measure and a description, or a function that makes several reports:
///
/// ```
/// use std::sync::Mutex;
///
/// static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());
///
/// memreport::reporter!("explicit/words", WORDS, "The words of all pages.");
/// memreport::reporter!(|reports| {
///     let known = WORDS.try_lock().map_or(0, |words| words.len());
///     reports.add(memreport::Report::count("words", known as i64, "How many words are known."));
/// });
///
/// # fn main() {
/// WORDS.lock().unwrap().push("heap".repeat(100));
/// let snapshot = memreport::snapshot();
/// let amount = |path| snapshot.reports.iter().find(|report| report.path == path).unwrap().amount;
/// assert!(amount("explicit/words") >= 400);
/// assert_eq!(amount("words"), 1);
/// # }
/// ```
///
/// A dependency that the source never names is not linked, and neither are its reporters. Write
/// `use that_crate as _;` to link it.
#[macro_export]
macro_rules! reporter {
    ($path:literal, $value:expr, $description:literal $(,)?) => {
        $crate::__private::submit! {
            $crate::__private::StaticReporter::new($path, |reports| {
                reports.measure($path, &$value, $description);
            })
        }
    };
    ($collect:expr $(,)?) => {
        $crate::__private::submit! {
            $crate::__private::StaticReporter::new(concat!(file!(), ":", line!()), $collect)
        }
    };
}

/// Reporters that were registered at run time.
static REGISTERED: Mutex<Registered> = Mutex::new(Registered { next: 0, entries: Vec::new() });

struct Registered {
    next: u64,
    entries: Vec<Entry>,
}

struct Entry {
    id: u64,
    name: &'static str,
    reporter: Handle,
    /// The path that the reporter of [`report_value`] owns as well.
    path: Option<Arc<str>>,
}

#[derive(Clone)]
enum Handle {
    Strong(Arc<dyn Reporter>),
    Weak(Weak<dyn Reporter>),
}

impl Handle {
    fn reporter(&self) -> Option<Arc<dyn Reporter>> {
        match self {
            Handle::Strong(reporter) => Some(Arc::clone(reporter)),
            Handle::Weak(reporter) => reporter.upgrade(),
        }
    }
}

/// Registers a reporter until the returned registration is dropped.
///
/// ```
/// use memreport::Report;
///
/// let registration = memreport::register(|reports: &mut memreport::Reports<'_>| {
///     reports.add(Report::non_heap("explicit/gpu", 4096, "Textures on the graphics card."));
/// });
/// assert!(memreport::snapshot().reports.iter().any(|report| report.path == "explicit/gpu"));
/// drop(registration);
/// assert!(!memreport::snapshot().reports.iter().any(|report| report.path == "explicit/gpu"));
/// ```
pub fn register<R: Reporter + 'static>(reporter: R) -> Registration {
    registration(add(Arc::new(reporter), std::any::type_name::<R>()))
}

/// Registers a reporter without owning it. It reports while both it and the registration live.
///
/// A collection owns it while it runs. So `Arc::try_unwrap` and `Arc::get_mut` may fail meanwhile,
/// and if the program drops its last `Arc` then, the reporter is dropped on the collecting thread.
pub fn register_weak<R: Reporter + 'static>(reporter: &Arc<R>) -> Registration {
    let reporter: Arc<dyn Reporter> = Arc::clone(reporter) as _;
    let handle = Handle::Weak(Arc::downgrade(&reporter));
    registration(add_entry(handle, std::any::type_name::<R>(), None))
}

/// Reports the bytes that `value` owns at `path`, while both `value` and the registration live.
///
/// A collection owns the value while it measures it. So `Arc::try_unwrap` and `Arc::get_mut` may
/// fail meanwhile, and if the program drops its last `Arc` then, the value is dropped on the
/// collecting thread.
pub fn report_value<T>(
    path: impl Into<String>,
    value: &Arc<T>,
    description: &'static str,
) -> Registration
where
    T: MallocSizeOf + Send + Sync + 'static,
{
    let path: Arc<str> = path.into().into();
    let own_path = Arc::clone(&path);
    let value = Arc::downgrade(value);
    let reporter = move |reports: &mut Reports<'_>| {
        if let Some(value) = value.upgrade() {
            reports.measure(&*own_path, &value, description);
        }
    };
    let handle = Handle::Strong(Arc::new(reporter));
    registration(add_entry(handle, std::any::type_name::<T>(), Some(path)))
}

/// Adds a reporter, and returns the number by which [`unregister`] knows it.
pub(crate) fn add(reporter: Arc<dyn Reporter>, name: &'static str) -> u64 {
    add_entry(Handle::Strong(reporter), name, None)
}

fn add_entry(reporter: Handle, name: &'static str, path: Option<Arc<str>>) -> u64 {
    let mut registered = registered();
    let id = registered.next;
    registered.next += 1;
    registered.entries.push(Entry { id, name, reporter, path });
    id
}

fn registration(id: u64) -> Registration {
    Registration::new(id, unregister)
}

/// Removes a reporter.
pub(crate) fn unregister(id: u64) {
    let mut registered = registered();
    let position = registered.entries.iter().position(|entry| entry.id == id);
    let entry = position.map(|position| registered.entries.swap_remove(position));
    drop(registered);
    // Dropped without the lock: the values that a reporter owns may have registrations of their
    // own.
    drop(entry);
}

fn registered() -> MutexGuard<'static, Registered> {
    // No code of this crate panics with the lock held, so a poisoned list is still whole.
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs every reporter. A reporter that panics loses its reports, and a note names it.
pub(crate) fn run_all(reports: &mut Reports<'_>) {
    let mut fixed: Vec<_> = inventory::iter::<StaticReporter>().copied().collect();
    fixed.sort_by_key(|reporter| reporter.name);
    for (place, reporter) in fixed.iter().enumerate() {
        run(reports, (ReporterId::Fixed(place), reporter.name), &reporter.collect);
    }
    // Copied, so that reporters may register others.
    let dynamic: Vec<_> = registered()
        .entries
        .iter()
        .map(|entry| (ReporterId::Registered(entry.id), entry.name, entry.reporter.clone()))
        .collect();
    for (id, name, handle) in dynamic {
        let reporter = handle.reporter();
        if let Some(reporter) = &reporter {
            run(reports, (id, name), &**reporter);
        }
        drop_reporter(reports, name, || drop((reporter, handle)));
    }
    // What follows is memory of this crate, and no reporter of the program's.
    let reporters = std::mem::take(&mut reports.gathered.reporters);
    run(reports, (ReporterId::Fixed(usize::MAX), "memreport"), &report_registry);
    reports.gathered.reporters = reporters;
}

/// Drops this collection's handle of a reporter. It is the last one if another thread has
/// unregistered the reporter meanwhile, and a destructor of the program may panic.
fn drop_reporter(reports: &mut Reports<'_>, name: &str, drop: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(drop)) {
        let message = panic_message(&*panic);
        reports.note(format!("the reporter {name} panicked when it was dropped ({message})"));
    }
}

/// Runs one reporter, unless it still runs for another collection.
fn run(reports: &mut Reports<'_>, (id, name): (ReporterId, &'static str), reporter: &dyn Reporter) {
    let progress = reports.progress;
    if let Some(running) = progress.skipped_reporter(id) {
        reports.gathered.missed.push(Missed::new(name, MissedReason::Running));
        return reports.note(format!("{}; its reports are missing", running.sentence()));
    }
    if progress.is_abandoned() {
        // Nobody uses the result. Should somebody, it is marked as incomplete.
        return reports.gathered.missed.push(Missed::new(name, MissedReason::Running));
    }
    progress.begin_reporter(id, name);
    run_to_end(reports, name, reporter);
    progress.end_reporter();
}

fn run_to_end(reports: &mut Reports<'_>, name: &str, reporter: &dyn Reporter) {
    let collection = reports.collection;
    collection.begin_reporter();
    let begin = collection.recorder().map(|recorder| (recorder, recorder.position()));
    let before = std::mem::take(&mut reports.gathered);
    let outcome = catch_unwind(AssertUnwindSafe(|| reporter.collect(reports)));
    let own = std::mem::replace(&mut reports.gathered, before);
    match outcome {
        Ok(()) => reports.gathered.add(own),
        Err(panic) => {
            collection.remove_visits_of_reporter();
            if let Some((recorder, position)) = begin {
                recorder.roll_back(position);
            }
            reports.gathered.missed.push(Missed::new(name, MissedReason::Panicked));
            reports.note(format!(
                "the reporter {name} panicked ({}); its reports are missing",
                panic_message(&*panic)
            ));
        }
    }
}

/// Reports the list of reporters, which is memory too.
fn report_registry(reports: &mut Reports<'_>) {
    counted_heap::report_list(reports);
    single_figure::report_list(reports);
    let registered = registered();
    if registered.entries.capacity() > 0 {
        reports.measure(
            "explicit/memreport/registry",
            &*registered,
            "The reporters that were registered at run time.",
        );
    }
}

impl MallocSizeOf for Registered {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.entries);
    }
}

impl MallocSizeOf for Entry {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.path);
        match &self.reporter {
            Handle::Strong(reporter) => ops.add(reporter),
            // Belongs to its owner.
            Handle::Weak(_) => {}
        }
    }
}

impl MallocSizeOf for dyn Reporter {
    /// Adds nothing: a reporter reports its own contents itself.
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reporter_is_shown_by_its_name() {
        let reporter = StaticReporter::new("shop", |_| {});
        assert_eq!(format!("{reporter:?}"), r#"StaticReporter("shop")"#);
    }

    /// A reporter that is unregistered while it runs, and whose destructor panics.
    struct Short(Mutex<Option<Registration>>);

    impl Reporter for Short {
        fn collect(&self, _: &mut Reports<'_>) {
            drop(self.0.lock().unwrap().take());
        }
    }

    impl Drop for Short {
        fn drop(&mut self) {
            panic!("a destructor");
        }
    }

    #[test]
    fn a_destructor_that_panics_in_a_collection_is_noted() {
        let note = "the reporter short panicked when it was dropped (a destructor)";
        let is_noted = || {
            let short: Arc<Short> = Arc::new(Short(Mutex::default()));
            let mut place = short.0.lock().unwrap();
            let reporter: Arc<dyn Reporter> = Arc::clone(&short) as _;
            *place = Some(registration(add(reporter, "short")));
            drop(place);
            // The registry and its collections have the only handles from here on.
            drop(short);
            crate::snapshot().notes.iter().any(|found| found == note)
        };
        // A snapshot of another test may run and drop it first.
        assert!((0..100).any(|_| is_noted()));
    }
}
