//! Reporters of memory that is attributed by its origin: the crate that allocated a block, or the
//! scope in which it was allocated. DMD alone can tell.

use super::Report;
use super::reporter::{Gathered, amount};
use crate::tracker::attribution::OriginReporter;

inventory::collect!(OriginReporter);

/// Reports the blocks that a crate allocates, for libraries whose source cannot be edited.
///
/// Takes a path and the name of a crate, or several in brackets, and optionally a description:
///
/// ```
/// memreport::reporter_of_crate!("explicit/lib/regex", ["regex_automata", "regex_syntax"]);
/// memreport::reporter_of_crate!("explicit/lib/tls", "rustls", "Sessions and certificates.");
/// # fn main() {}
/// ```
///
/// A block belongs to the crate of the innermost function that requested it, apart from Rust's
/// libraries, which allocate for their callers. `about-memory heap tree --by crate` shows the
/// crates of a program. A block that another reporter measures is that reporter's.
///
/// DMD attributes the blocks, and takes them as reported. It needs a stack for every block
/// (`--stacks=full`, the default) and the program's symbol table; a note names what is missing.
/// Without DMD, there is no such report, and a note names it. A function that the compiler
/// has inlined counts for the function that contains it.
#[macro_export]
macro_rules! reporter_of_crate {
    ($path:literal, $krate:literal $(, $description:literal)? $(,)?) => {
        $crate::reporter_of_crate!($path, [$krate] $(, $description)?);
    };
    ($path:literal, [$($krate:literal),+ $(,)?] $(,)?) => {
        $crate::reporter_of_crate!(
            $path,
            [$($krate),+],
            "Blocks that these crates have allocated, by the functions that requested them."
        );
    };
    ($path:literal, [$($krate:literal),+ $(,)?], $description:literal $(,)?) => {
        $crate::__private::submit! {
            $crate::__private::OriginReporter::of_crates($path, &[$($krate),+], $description)
        }
    };
}

/// Reports the blocks that are allocated in a scope, wherever it is entered.
///
/// Takes a path, the name of the scope, and optionally a description:
///
/// ```
/// memreport::reporter_of_scope!("explicit/requests", "request", "Memory of open requests.");
/// # fn main() {}
/// ```
///
/// Blocks that were allocated in scopes within this one count too. A block belongs to the innermost
/// of its scopes that has a reporter. If a crate's reporter counts it, or another one measures it,
/// it is theirs. See [`scope!`](crate::scope) and
/// [`reporter_of_crate!`](crate::reporter_of_crate): DMD attributes these blocks too, and takes
/// them as reported.
#[macro_export]
macro_rules! reporter_of_scope {
    ($path:literal, $scope:literal $(,)?) => {
        $crate::reporter_of_scope!(
            $path,
            $scope,
            "Blocks that were allocated in this scope, or in one within it."
        );
    };
    ($path:literal, $scope:literal, $description:literal $(,)?) => {
        $crate::__private::submit! {
            $crate::__private::OriginReporter::of_scope($path, $scope, $description)
        }
    };
}

/// Returns the reporters of origins, sorted by path.
#[must_use]
pub fn origin_reporters() -> Vec<&'static OriginReporter> {
    let mut reporters: Vec<_> = inventory::iter::<OriginReporter>().collect();
    reporters.sort_by_key(|reporter| reporter.path());
    reporters
}

/// Adds the report of an origin.
pub(crate) fn report(reporter: &OriginReporter, bytes: usize, gathered: &mut Gathered) {
    gathered.reporters.push(reporter.path().to_owned());
    gathered.reports.push(Report::heap(reporter.path(), amount(bytes), reporter.description()));
}

/// Notes that the reports of origins are missing, because DMD does not track the heap.
pub(crate) fn note_missing(gathered: &mut Gathered) {
    let mut paths: Vec<_> = origin_reporters().iter().map(|reporter| reporter.path()).collect();
    paths.dedup();
    if !paths.is_empty() {
        gathered.notes.push(format!(
            "DMD attributes blocks to crates and scopes, and it does not track the heap: {} \
             missing, and in heap-unclassified",
            match &*paths {
                [path] => format!("{path} is"),
                _ => format!("{} are", paths.join(", ")),
            }
        ));
    }
}
