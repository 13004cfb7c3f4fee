//! Registers single figures of the program's own, which are also read without a collection.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::registry;
use super::reporter::{Reporter, Reports};
use crate::event::callback::Registration;
use crate::measure::ops::Ops;
use crate::measure::size_of::MallocSizeOf;
use crate::report::{Kind, Report, Units};

/// The names of the reports and trees that the process and its allocator have themselves.
const OF_THE_PROCESS: [&str; 18] = [
    "c-heap",
    "explicit",
    "heap-allocated",
    "heap-allocations",
    "heap-committed",
    "heap-overhead-fraction",
    "heap-resident",
    "page-faults-hard",
    "page-faults-soft",
    "pss",
    "resident",
    "resident-fast",
    "resident-peak",
    "resident-unique",
    "rss",
    "swap",
    "threads",
    "vsize",
];

/// A figure of the program's own. `F` reads it, and returns `None` while it is not available.
struct SingleFigure<F: ?Sized> {
    name: &'static str,
    units: Units,
    description: &'static str,
    read: F,
}

type Read = dyn Fn() -> Option<i64> + Send + Sync;

impl<F: Fn() -> Option<i64> + Send + Sync> Reporter for SingleFigure<F> {
    fn collect(&self, reports: &mut Reports<'_>) {
        if let Some(amount) = (self.read)() {
            let (name, description) = (self.name.to_owned(), self.description.into());
            reports.add(Report::new(name, Kind::Other, self.units, amount, description));
        }
    }
}

/// The registered figures, each with the number of its reporter.
static REGISTERED: Mutex<Vec<(u64, Arc<SingleFigure<Read>>)>> = Mutex::new(Vec::new());

/// Registers a figure of the program's own until the returned registration is dropped.
///
/// Each snapshot has it as a report of this name, and `metrics` as a series; [`registered`] reads
/// it without a collection. `read` returns bytes, a number, or hundredths of a percent, as `units`
/// says. While it returns `None`, the figure is not available and in no report. It must not wait
/// for a lock, like a reporter.
///
/// ```
/// use std::sync::atomic::AtomicI64;
/// use std::sync::atomic::Ordering::Relaxed;
/// use memreport::{Units, distinguished};
///
/// static TEXTURES: AtomicI64 = AtomicI64::new(0);
///
/// let textures = distinguished::register(
///     "gpu-textures",
///     Units::Bytes,
///     "Textures on the graphics card.",
///     || Some(TEXTURES.load(Relaxed)),
/// )?;
/// TEXTURES.store(4096, Relaxed);
/// assert_eq!(distinguished::registered("gpu-textures"), Some(4096));
/// assert!(memreport::snapshot().reports.iter().any(|report| report.path == "gpu-textures"));
/// drop(textures);
/// assert_eq!(distinguished::registered("gpu-textures"), None);
/// # Ok::<(), distinguished::RefusedName>(())
/// ```
///
/// # Errors
///
/// Fails if the name is empty, has a `/` or `\`, or belongs to another figure: one of the process,
/// or one that is registered.
pub fn register(
    name: &'static str,
    units: Units,
    description: &'static str,
    read: impl Fn() -> Option<i64> + Send + Sync + 'static,
) -> Result<Registration, RefusedName> {
    if name.is_empty() || name.contains(['/', '\\']) {
        return Err(RefusedName::NotSingle { name });
    }
    if OF_THE_PROCESS.contains(&name) {
        return Err(RefusedName::OfTheProcess { name });
    }
    let mut figures = figures();
    if figures.iter().any(|(_, figure)| figure.name == name) {
        return Err(RefusedName::Registered { name });
    }
    let figure = Arc::new(SingleFigure { name, units, description, read });
    let id = registry::add(Arc::clone(&figure) as Arc<dyn Reporter>, name);
    figures.push((id, figure));
    Ok(Registration::new(id, unregister))
}

/// Reads a registered figure, without a collection. Returns `None` if there is none of this name,
/// or if it is not available.
///
/// A panic of the function that reads it is passed on.
#[must_use]
pub fn registered(name: &str) -> Option<i64> {
    // Copied, so that the function may register others.
    let figure = figures().iter().find(|(_, figure)| figure.name == name)?.1.clone();
    (figure.read)()
}

fn unregister(id: u64) {
    let mut figures = figures();
    let place = figures.iter().position(|(of, _)| *of == id);
    let figure = place.map(|place| figures.swap_remove(place));
    drop(figures);
    // Without the lock: what the function owns may have registrations of its own.
    drop(figure);
    registry::unregister(id);
}

fn figures() -> MutexGuard<'static, Vec<(u64, Arc<SingleFigure<Read>>)>> {
    // No code of this crate panics with the lock held, so a poisoned list is still whole.
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports the list of figures, which is memory too.
pub(crate) fn report_list(reports: &mut Reports<'_>) {
    let figures = figures();
    if figures.capacity() > 0 {
        reports.measure(
            "explicit/memreport/single-figures",
            &*figures,
            "The single figures that were registered at run time.",
        );
    }
}

impl MallocSizeOf for SingleFigure<Read> {
    /// Adds nothing: the figure's function is a reporter, which reports its own contents itself.
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

/// The reason why a figure cannot be registered under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedName {
    /// It is empty, or a path of a tree.
    NotSingle {
        /// The name.
        name: &'static str,
    },
    /// Every snapshot has a figure or a tree of this name.
    OfTheProcess {
        /// The name.
        name: &'static str,
    },
    /// A figure of this name is registered.
    Registered {
        /// The name.
        name: &'static str,
    },
}

impl fmt::Display for RefusedName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedName::NotSingle { name: "" } => {
                out.write_str("a single figure needs a name, such as `open-files`")
            }
            RefusedName::NotSingle { name } => write!(
                out,
                "`{name}` is a path of a tree; register a reporter for it, or choose a name without `/` and `\\`"
            ),
            RefusedName::OfTheProcess { name } => {
                write!(out, "every snapshot has its own `{name}`; choose another name")
            }
            RefusedName::Registered { name } => write!(
                out,
                "a figure called `{name}` is registered; drop its registration first, or choose another name"
            ),
        }
    }
}

impl Error for RefusedName {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::collect::snapshot;

    fn amount_of(name: &str) -> Option<i64> {
        let snapshot = snapshot();
        snapshot.reports.iter().find(|report| report.path == name).map(|report| report.amount)
    }

    #[test]
    fn a_registered_figure_is_in_snapshots_and_is_read_without_one() {
        let files = register("test-files", Units::Count, "Files.", || Some(7)).unwrap();
        assert_eq!((registered("test-files"), amount_of("test-files")), (Some(7), Some(7)));
        drop(files);
        assert_eq!((registered("test-files"), amount_of("test-files")), (None, None));
    }

    #[test]
    fn a_figure_that_is_not_available_is_in_no_report() {
        register("test-absent", Units::Bytes, "Absent.", || None).unwrap().forever();
        assert_eq!((registered("test-absent"), amount_of("test-absent")), (None, None));
    }

    #[test]
    fn a_name_belongs_to_one_figure() {
        let refused = |name| register(name, Units::Bytes, "", || None).unwrap_err().to_string();
        assert_eq!(refused(""), "a single figure needs a name, such as `open-files`");
        assert!(refused("explicit/x").starts_with("`explicit/x` is a path of a tree"));
        assert!(refused("vsize").starts_with("every snapshot has its own `vsize`"));
        let first = register("test-once", Units::Bytes, "", || Some(1)).unwrap();
        assert!(refused("test-once").starts_with("a figure called `test-once` is registered"));
        drop(first);
        assert!(register("test-once", Units::Bytes, "", || Some(1)).is_ok());
    }

    #[test]
    fn a_figure_that_panics_loses_its_own_report_only() {
        let figure = register("test-panics", Units::Bytes, "", || panic!("as intended")).unwrap();
        let snapshot = snapshot();
        assert!(snapshot.missed().iter().any(|missed| missed.reporter == "test-panics"));
        drop(figure);
    }
}
