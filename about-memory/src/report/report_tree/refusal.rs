//! Defines the reasons to refuse a file of valid JSON reports. Firefox's page refuses the same
//! files.

use crate::report::numbers::Unit;
use memreport::snapshot::read::Field;
use std::error::Error;
use std::fmt;

/// An error in one report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReportFault {
    /// A kind other than `HEAP` and `NONHEAP` in the tree `explicit`.
    KindInExplicit(Field<'static>),
    /// A unit other than bytes in the tree `explicit`.
    UnitsInExplicit(Field<'static>),
    /// A `_presence` that is neither 1 nor 2.
    Presence(Field<'static>),
    /// Another `_presence` than an earlier report of the same path.
    PresenceMismatch,
    /// A process with the name of a JavaScript property.
    ReservedProcess(String),
    /// A tree with the name of a JavaScript property.
    ReservedTree(String),
    /// The paths of the reports have more segments than the limit.
    TooManyPaths {
        /// The limit.
        limit: usize,
    },
    /// A field that a comparison needs is missing.
    Missing(&'static str),
    /// A process that is no string, which a comparison needs.
    Process(Field<'static>),
    /// Another kind than an earlier report of the same path.
    OtherKind(Field<'static>),
    /// Other units than an earlier report of the same path.
    OtherUnits(Field<'static>),
}

impl fmt::Display for ReportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportFault::KindInExplicit(found) => {
                write!(
                    f,
                    "its kind is {found}; below `explicit` it must be 1 (HEAP) or 0 (NONHEAP)"
                )
            }
            ReportFault::UnitsInExplicit(found) => {
                write!(f, "its units are {found}; below `explicit` they must be 0 (bytes)")
            }
            ReportFault::Presence(found) => {
                write!(
                    f,
                    "its `_presence` is {found}; 1, 2 or no such field is known: leave it out"
                )
            }
            ReportFault::PresenceMismatch => f.write_str(
                "its `_presence` differs from an earlier report of this path; leave it out",
            ),
            ReportFault::ReservedProcess(name) => {
                write!(
                    f,
                    "its process is called `{name}`, a name that about:memory cannot show; give it another"
                )
            }
            ReportFault::ReservedTree(name) => {
                write!(
                    f,
                    "its tree is called `{name}`, a name that about:memory cannot show; give it another"
                )
            }
            ReportFault::TooManyPaths { limit } => {
                write!(
                    f,
                    "the reports up to it have more than {limit} different paths and parts of paths"
                )
            }
            ReportFault::Missing(field) => write!(f, "it has no `{field}`, which comparing needs"),
            ReportFault::Process(found) => {
                write!(f, "its process is {found}; comparing needs a string")
            }
            ReportFault::OtherKind(found) => {
                write!(
                    f,
                    "its kind is {found}, unlike that of another report of this path; they must be the same"
                )
            }
            ReportFault::OtherUnits(found) => {
                write!(
                    f,
                    "its units are {found}, unlike those of another report of this path; they must be the same"
                )
            }
        }
    }
}

impl Error for ReportFault {}

/// An error in the trees of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// A path is a measurement, and has others below it.
    LeafAndTree {
        /// The path, and its process.
        path: String,
    },
    /// Units that Firefox does not define.
    UnknownUnits {
        /// The path, and its process.
        path: String,
    },
    /// The units differ from the units of the tree.
    MixedUnits {
        /// The path, and its process.
        path: String,
        /// Its unit.
        unit: Unit,
        /// The unit of the tree's root.
        tree: Unit,
    },
    /// Two files differ in a property that must be the same.
    Unlike(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::LeafAndTree { path } => {
                write!(
                    f,
                    "{path} is a report, and has reports below it; move it to a path of its own"
                )
            }
            Refusal::UnknownUnits { path } => {
                write!(f, "the units of {path} are none of 0, 1, 2 and 3")
            }
            Refusal::MixedUnits { path, unit, tree } => {
                write!(
                    f,
                    "the unit of {path} is {}, and that of its tree {}; a tree has one unit",
                    word(*unit),
                    word(*tree)
                )
            }
            Refusal::Unlike(property) => {
                write!(f, "the two files differ in `{property}`; they cannot be compared")
            }
        }
    }
}

impl Error for Refusal {}

fn word(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Count => "a count",
        Unit::CountCumulative => "a cumulative count",
        Unit::Percentage => "a percentage",
        Unit::Unknown => "unknown",
    }
}
