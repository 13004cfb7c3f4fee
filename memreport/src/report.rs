//! One measurement: how much of what lies under which path of which process.

#[cfg(feature = "std")]
pub(crate) mod timeout;
#[cfg(feature = "std")]
pub(crate) mod reporter;
#[cfg(feature = "std")]
pub(crate) mod registry;
#[cfg(feature = "std")]
pub(crate) mod counted_heap;

use std::borrow::Cow;

/// What a report says: so much of this, at this path.
///
/// Segments of `path` are separated by `/`; the first names the tree. A `/` inside a segment, as in a URL, is written `\`,
/// and viewers show it as `/` again. A path without a separator is a measurement of its own, outside any tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The process that is measured; empty for the one that made the snapshot.
    pub process: String,
    /// Where the measurement belongs, as `explicit/index/words`.
    pub path: String,
    /// Which kind of memory it is.
    pub kind: Kind,
    /// The unit of `amount`.
    pub units: Units,
    /// How much: bytes, a count, or hundredths of a percent. May be negative.
    pub amount: i64,
    /// One sentence that says what is measured.
    pub description: Cow<'static, str>,
}

impl Report {
    /// Bytes in blocks of the heap allocator: they count against `heap-allocated`.
    pub fn heap(
        path: impl Into<String>,
        bytes: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Heap, Units::Bytes, bytes, description.into())
    }

    /// Bytes that the program asked of the operating system itself: mapped files, stacks, arenas of its own.
    pub fn non_heap(
        path: impl Into<String>,
        bytes: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::NonHeap, Units::Bytes, bytes, description.into())
    }

    /// Bytes seen from another side, such as `resident`: they belong in no sum.
    pub fn other(
        path: impl Into<String>,
        bytes: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Other, Units::Bytes, bytes, description.into())
    }

    /// A number of things that goes up and down.
    pub fn count(
        path: impl Into<String>,
        count: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Other, Units::Count, count, description.into())
    }

    /// A number of things that never decreases, such as page faults.
    pub fn cumulative(
        path: impl Into<String>,
        count: i64,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Report::new(path.into(), Kind::Other, Units::CountCumulative, count, description.into())
    }

    /// A share, in hundredths of a percent: 2,500 is 25 %. More than 100 % is allowed.
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

/// Which kind of memory a report measures. It matters in the tree `explicit`, whose `HEAP` reports are what the
/// allocator handed out and somebody can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Asked of the operating system without the heap allocator.
    NonHeap,
    /// In blocks of the heap allocator.
    Heap,
    /// Neither; counts and percentages are always of this kind.
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
