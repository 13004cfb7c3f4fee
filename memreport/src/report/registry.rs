//! Who reports: reporters that the linker gathers, and those that come and go while the program runs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::counted_heap::report_list;
use super::reporter::{Reporter, Reports};
use super::timeout::ReporterId;
use crate::event::callback::{Registration, panic_message};
use crate::measure::ops::Ops;
use crate::measure::size_of::MallocSizeOf;

/// A reporter that is part of the program from its start. Made by [`reporter!`](crate::reporter).
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
/// With a path, the static to measure and a description, or with a function that makes several reports:
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
/// assert!(snapshot.reports.iter().any(|report| report.path == "explicit/words" && report.amount >= 400));
/// assert!(snapshot.reports.iter().any(|report| report.path == "words" && report.amount == 1));
/// # }
/// ```
///
/// A crate that is listed as a dependency but never named in the source is not linked, and its reporters with it:
/// `use that_crate as _;` is enough.
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

/// Reporters that were registered while the program ran.
static REGISTERED: Mutex<Registered> = Mutex::new(Registered { next: 0, entries: Vec::new() });

struct Registered {
    next: u64,
    entries: Vec<Entry>,
}

struct Entry {
    id: u64,
    name: &'static str,
    reporter: Held,
    /// The path that a reporter made here holds as well.
    path: Option<Arc<str>>,
}

#[derive(Clone)]
enum Held {
    Strong(Arc<dyn Reporter>),
    Weak(Weak<dyn Reporter>),
}

impl Held {
    fn reporter(&self) -> Option<Arc<dyn Reporter>> {
        match self {
            Held::Strong(reporter) => Some(Arc::clone(reporter)),
            Held::Weak(reporter) => reporter.upgrade(),
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
    add(Held::Strong(Arc::new(reporter)), std::any::type_name::<R>(), None)
}

/// Registers a reporter that somebody else owns: it reports for as long as it lives and the registration does.
pub fn register_weak<R: Reporter + 'static>(reporter: &Arc<R>) -> Registration {
    let reporter: Arc<dyn Reporter> = Arc::clone(reporter) as _;
    add(Held::Weak(Arc::downgrade(&reporter)), std::any::type_name::<R>(), None)
}

/// Reports what `value` owns at `path`, for as long as `value` lives and the registration does.
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
    add(Held::Strong(Arc::new(reporter)), std::any::type_name::<T>(), Some(path))
}

fn add(reporter: Held, name: &'static str, path: Option<Arc<str>>) -> Registration {
    let mut registered = registered();
    let id = registered.next;
    registered.next += 1;
    registered.entries.push(Entry { id, name, reporter, path });
    Registration::new(id, forget)
}

fn forget(id: u64) {
    let mut registered = registered();
    let position = registered.entries.iter().position(|entry| entry.id == id);
    let entry = position.map(|position| registered.entries.swap_remove(position));
    drop(registered);
    // Dropped without the lock: what the reporter owns may have registrations of its own.
    drop(entry);
}

fn registered() -> MutexGuard<'static, Registered> {
    // Nothing of ours panics with the lock held, so a poisoned list is still whole.
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs every reporter. One that panics loses its own reports, and is named.
pub(crate) fn run_all(reports: &mut Reports<'_>) {
    let mut fixed: Vec<_> = inventory::iter::<StaticReporter>().copied().collect();
    fixed.sort_by_key(|reporter| reporter.name);
    for (place, reporter) in fixed.iter().enumerate() {
        run(reports, (ReporterId::Fixed(place), reporter.name), &reporter.collect);
    }
    // Copied out, so that reporters may register others.
    let dynamic: Vec<_> = registered()
        .entries
        .iter()
        .map(|entry| (ReporterId::Registered(entry.id), entry.name, entry.reporter.clone()))
        .collect();
    for (id, name, held) in dynamic {
        if let Some(reporter) = held.reporter() {
            run(reports, (id, name), &*reporter);
        }
    }
    run(reports, (ReporterId::Fixed(usize::MAX), "memreport"), &report_registry);
}

/// Runs one reporter, if it is not at work for another collection.
fn run(reports: &mut Reports<'_>, (id, name): (ReporterId, &'static str), reporter: &dyn Reporter) {
    let progress = reports.progress;
    if let Some(at_work) = progress.passes_over(id) {
        return reports.note(format!("{}; its reports are missing", at_work.sentence()));
    }
    progress.begins(id, name);
    run_to_its_end(reports, name, reporter);
    progress.ends();
}

fn run_to_its_end(reports: &mut Reports<'_>, name: &str, reporter: &dyn Reporter) {
    let collection = reports.collection;
    collection.next_source();
    let heard = collection.recorder().map(|recorder| (recorder, recorder.position()));
    let before = std::mem::take(&mut reports.gathered);
    let outcome = catch_unwind(AssertUnwindSafe(|| reporter.collect(reports)));
    let own = std::mem::replace(&mut reports.gathered, before);
    match outcome {
        Ok(()) => {
            reports.gathered.reports.extend(own.reports);
            reports.gathered.notes.extend(own.notes);
            reports.gathered.unmeasured += own.unmeasured;
        }
        Err(panic) => {
            collection.forget_source();
            if let Some((recorder, position)) = heard {
                recorder.roll_back(position);
            }
            reports.note(format!(
                "the reporter {name} panicked ({}); its reports are missing",
                panic_message(&*panic)
            ));
        }
    }
}

/// The list of reporters is memory too.
fn report_registry(reports: &mut Reports<'_>) {
    report_list(reports);
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
            Held::Strong(reporter) => ops.add(reporter),
            // Its owner's.
            Held::Weak(_) => {}
        }
    }
}

impl MallocSizeOf for dyn Reporter {
    /// What a reporter owns beyond its own block is its own business.
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}
