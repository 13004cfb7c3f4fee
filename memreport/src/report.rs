//! Defines a report: one measurement at a path of a process.

#[cfg(feature = "std")]
pub(crate) mod turn;
#[cfg(feature = "std")]
pub(crate) mod timeout;
#[cfg(feature = "std")]
pub(crate) mod missed;
#[cfg(feature = "std")]
pub(crate) mod reporter;
#[cfg(feature = "std")]
pub(crate) mod registry;
#[cfg(feature = "std")]
pub(crate) mod counted_heap;
#[cfg(feature = "std")]
pub(crate) mod by_origin;
#[cfg(feature = "std")]
mod counted_malloc;
#[cfg(all(feature = "c-api", unix))]
mod call_lock;
#[cfg(all(feature = "c-api", unix))]
mod c_api;
#[cfg(feature = "std")]
pub(crate) mod single_figure;

use std::borrow::Cow;

/// One measurement: an amount at a path.
///
/// Segments of `path` are separated by `/`; the first names the tree. A `/` within a segment, such
/// as a URL's, is written `\`, and viewers show it as `/` again. A path without a separator is a
/// single measurement outside any tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The process that is measured. Empty for the process that takes the snapshot.
    pub process: String,
    /// The path, such as `explicit/index/words`.
    pub path: String,
    /// The kind of memory.
    pub kind: Kind,
    /// The unit of `amount`.
    pub units: Units,
    /// The amount: bytes, a count, or hundredths of a percent. May be negative.
    pub amount: i64,
    /// One sentence that describes the measurement.
    pub description: Cow<'static, str>,
}

impl Report {
    /// Creates a report of bytes in blocks of the heap allocator. They count against
    /// `heap-allocated`.
    pub fn heap(
        path: impl Into<String>,
        bytes: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Heap, Units::Bytes, bytes, description.into())
    }

    /// Creates a report of bytes that the program got from the operating system itself: mapped
    /// files, stacks, arenas of its own.
    pub fn non_heap(
        path: impl Into<String>,
        bytes: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::NonHeap, Units::Bytes, bytes, description.into())
    }

    /// Creates a report of bytes that belong in no sum, such as `resident`.
    pub fn other(
        path: impl Into<String>,
        bytes: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Other, Units::Bytes, bytes, description.into())
    }

    /// Creates a report of a number of things that goes up and down.
    pub fn count(
        path: impl Into<String>,
        count: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Other, Units::Count, count, description.into())
    }

    /// Creates a report of a number of things that never decreases, such as page faults.
    pub fn cumulative(
        path: impl Into<String>,
        count: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Other, Units::CountCumulative, count, description.into())
    }

    /// Creates a report of a share in hundredths of a percent: 2,500 is 25 %. More than 100 % is
    /// allowed.
    pub fn percentage(
        path: impl Into<String>,
        hundredths: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Other, Units::Percentage, hundredths, description.into())
    }

    fn new(
        path: String,
        kind: Kind,
        units: Units,
        amount: i64,
        description: Cow<'static, str>,
    ) -> Self {
        Report { process: String::new(), path, kind, units, amount, description }
    }
}

/// The kind of memory that a report measures. In the tree `explicit`, the `HEAP` reports are the
/// attributed part of `heap-allocated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Memory from the operating system, without the heap allocator.
    NonHeap,
    /// Blocks of the heap allocator.
    Heap,
    /// Neither. Counts and percentages are always of this kind.
    Other,
}

/// The unit of a report's amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Units {
    /// Bytes.
    Bytes,
    /// A number of things at this moment.
    Count,
    /// A number of things since the program began.
    CountCumulative,
    /// Hundredths of a percent.
    Percentage,
}
