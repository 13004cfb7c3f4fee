//! Breakdowns: the tree of axes that a census splits blocks by.

mod error;
mod names;
mod json;
mod words;

pub use error::BreakdownError;

use crate::axis::Axis;
pub(super) use names::{json_name, missing_name};

/// The way in which blocks are split and counted. The default is [`Count`].
///
/// [`usual`](Self::usual) is the counterpart of SpiderMonkey's default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breakdown {
    /// Counts the blocks.
    Count(Count),
    /// Lists the blocks.
    Bucket(Bucket),
    /// Splits the blocks by how often they are reported.
    State(Box<StateSplit>),
    /// Splits the blocks by an axis.
    Split(Box<Split>),
    /// Applies each of several breakdowns to all blocks.
    Several(Vec<Breakdown>),
}

impl Default for Breakdown {
    fn default() -> Self {
        Count::default().into()
    }
}

impl Breakdown {
    /// Returns the name of the breakdown in JSON; of a count, its label.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Breakdown::Count(count) => count.label.as_deref().unwrap_or("count"),
            Breakdown::Bucket(_) => "bucket",
            Breakdown::State(_) => "coarseType",
            Breakdown::Split(split) => json_name(&split.axis),
            Breakdown::Several(_) => "several",
        }
    }

    /// Returns the breakdowns directly within this one.
    #[must_use]
    pub fn inner(&self) -> Vec<&Breakdown> {
        match self {
            Breakdown::Count(_) | Breakdown::Bucket(_) => Vec::new(),
            Breakdown::State(split) => split.of.iter().collect(),
            Breakdown::Split(split) if missing_name(&split.axis).is_none() => vec![&split.then],
            Breakdown::Split(split) => vec![&split.then, &split.missing],
            Breakdown::Several(several) => several.iter().collect(),
        }
    }

    /// Returns a breakdown that suits any heap: unreported blocks by type, reported ones by
    /// reporter.
    ///
    /// SpiderMonkey's default also splits by coarse type first, and each coarse type by the axis
    /// that suits it.
    #[must_use]
    pub fn usual() -> Self {
        StateSplit::default()
            .unreported(Split::by(Axis::Type))
            .once(Split::by(Axis::reporter()))
            .twice(Split::by(Axis::reporter()))
            .other(Split::by(Axis::Type))
            .into()
    }
}

/// The figures that are written of counted blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    pub(super) count: bool,
    pub(super) bytes: bool,
    pub(super) slop: bool,
    pub(super) label: Option<String>,
}

impl Default for Count {
    /// Returns the number of blocks and their bytes.
    fn default() -> Self {
        Count { count: true, bytes: true, slop: false, label: None }
    }
}

impl Count {
    /// Sets whether the number of blocks is written.
    #[must_use]
    pub fn count(self, count: bool) -> Self {
        Count { count, ..self }
    }

    /// Sets whether the usable bytes are written.
    #[must_use]
    pub fn bytes(self, bytes: bool) -> Self {
        Count { bytes, ..self }
    }

    /// Sets whether the bytes beyond the requested ones are written.
    #[must_use]
    pub fn slop(self, slop: bool) -> Self {
        Count { slop, ..self }
    }

    /// Sets a text that is written beside the figures.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Count { label: Some(label.into()), ..self }
    }
}

/// The length of a list of blocks.
///
/// Blocks are listed one by one where a dump contains them so (`--mode=scan`), else in groups that
/// are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub(super) limit: u32,
}

impl Default for Bucket {
    /// Returns a list of at most 100 lines.
    fn default() -> Self {
        Bucket { limit: 100 }
    }
}

impl Bucket {
    /// Sets the greatest number of lines. Those with the most bytes are listed, the others are
    /// added up.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Bucket { limit }
    }
}

/// A split by how often blocks are reported, with a breakdown for each state.
///
/// All states are in the census, also those of no block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateSplit {
    /// In the order of [`ReportState`](crate::axis::ReportState).
    pub(super) of: [Breakdown; 4],
}

impl StateSplit {
    /// Sets the breakdown of blocks that no report counts.
    #[must_use]
    pub fn unreported(self, then: impl Into<Breakdown>) -> Self {
        self.with(0, then)
    }

    /// Sets the breakdown of blocks that one report counts.
    #[must_use]
    pub fn once(self, then: impl Into<Breakdown>) -> Self {
        self.with(1, then)
    }

    /// Sets the breakdown of blocks that two reports or more count.
    #[must_use]
    pub fn twice(self, then: impl Into<Breakdown>) -> Self {
        self.with(2, then)
    }

    /// Sets the breakdown of blocks from a dump without reports.
    #[must_use]
    pub fn other(self, then: impl Into<Breakdown>) -> Self {
        self.with(3, then)
    }

    /// Splits blocks by state, and those of each state by the same breakdown.
    #[must_use]
    pub fn all(then: impl Into<Breakdown>) -> Self {
        let then = then.into();
        StateSplit { of: [then.clone(), then.clone(), then.clone(), then] }
    }

    fn with(mut self, state: usize, then: impl Into<Breakdown>) -> Self {
        self.of[state] = then.into();
        self
    }
}

/// A split by an axis, with a breakdown for its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    pub(super) axis: Axis,
    pub(super) then: Breakdown,
    pub(super) missing: Breakdown,
}

impl Split {
    /// Splits blocks by `axis`, and counts those of each group.
    #[must_use]
    pub fn by(axis: Axis) -> Self {
        Split { axis, then: Breakdown::default(), missing: Breakdown::default() }
    }

    /// Sets the breakdown of the blocks of a group.
    #[must_use]
    pub fn then(self, then: impl Into<Breakdown>) -> Self {
        Split { then: then.into(), ..self }
    }

    /// Sets the breakdown of blocks without a key. Changes nothing where every block has one.
    #[must_use]
    pub fn otherwise(self, missing: impl Into<Breakdown>) -> Self {
        let has_missing = missing_name(&self.axis).is_some();
        if has_missing { Split { missing: missing.into(), ..self } } else { self }
    }
}

impl From<Count> for Breakdown {
    fn from(count: Count) -> Self {
        Breakdown::Count(count)
    }
}

impl From<Bucket> for Breakdown {
    fn from(bucket: Bucket) -> Self {
        Breakdown::Bucket(bucket)
    }
}

impl From<StateSplit> for Breakdown {
    fn from(split: StateSplit) -> Self {
        Breakdown::State(Box::new(split))
    }
}

impl From<Split> for Breakdown {
    fn from(split: Split) -> Self {
        match split.axis {
            Axis::State => StateSplit::all(split.then).into(),
            _ => Breakdown::Split(Box::new(split)),
        }
    }
}

impl From<Vec<Breakdown>> for Breakdown {
    fn from(several: Vec<Breakdown>) -> Self {
        Breakdown::Several(several)
    }
}
