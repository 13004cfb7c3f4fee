//! Breakdowns: what blocks are told apart by, one question within the other.

use std::num::NonZeroU32;

/// What blocks are told apart by. The default is [`Count`]; [`usual`](Self::usual) is what SpiderMonkey's would be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breakdown {
    /// By nothing: they are counted.
    Count(Count),
    /// By nothing: they are listed.
    Bucket(Bucket),
    /// By how often they are reported.
    CoarseType(Box<CoarseType>),
    /// By an answer of their own.
    Split(Box<Split>),
    /// By each of these at once.
    Several(Vec<Breakdown>),
}

impl Default for Breakdown {
    fn default() -> Self {
        Count::default().into()
    }
}

impl Breakdown {
    /// What it is by, in a word; of a count, its label.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Breakdown::Count(count) => count.label.as_deref().unwrap_or("count"),
            Breakdown::Bucket(_) => "bucket",
            Breakdown::CoarseType(_) => "coarseType",
            Breakdown::Split(split) => split.axis.name(),
            Breakdown::Several(_) => "several",
        }
    }

    /// The breakdowns directly within it.
    #[must_use]
    pub fn inner(&self) -> Vec<&Breakdown> {
        match self {
            Breakdown::Count(_) | Breakdown::Bucket(_) => Vec::new(),
            Breakdown::CoarseType(coarse) => coarse.of.iter().collect(),
            Breakdown::Split(split) if split.axis.missing().is_none() => vec![&split.then],
            Breakdown::Split(split) => vec![&split.then, &split.missing],
            Breakdown::Several(several) => several.iter().collect(),
        }
    }

    /// What is worth knowing of any heap: dark blocks by type, reported ones by reporter.
    ///
    /// SpiderMonkey's own default tells coarse types apart as well, and within them what tells most of each.
    #[must_use]
    pub fn usual() -> Self {
        CoarseType::default()
            .unreported(Split::by(Axis::Type))
            .once(Split::by(Axis::Reporter { depth: None }))
            .twice(Split::by(Axis::Reporter { depth: None }))
            .other(Split::by(Axis::Type))
            .into()
    }
}

/// How blocks are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    pub(super) count: bool,
    pub(super) bytes: bool,
    pub(super) slop: bool,
    pub(super) label: Option<String>,
}

impl Default for Count {
    /// How many, and their bytes.
    fn default() -> Self {
        Count { count: true, bytes: true, slop: false, label: None }
    }
}

impl Count {
    /// Whether it is said how many they are.
    #[must_use]
    pub fn count(self, count: bool) -> Self {
        Count { count, ..self }
    }

    /// Whether their usable bytes are said.
    #[must_use]
    pub fn bytes(self, bytes: bool) -> Self {
        Count { bytes, ..self }
    }

    /// Whether it is said how many of those bytes were not asked for.
    #[must_use]
    pub fn slop(self, slop: bool) -> Self {
        Count { slop, ..self }
    }

    /// Words that stand beside the numbers.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Count { label: Some(label.into()), ..self }
    }
}

/// How blocks are listed: one by one where a dump has them so (`--mode=scan`), else those that are alike together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub(super) limit: u32,
}

impl Default for Bucket {
    /// A hundred lines at most.
    fn default() -> Self {
        Bucket { limit: 100 }
    }
}

impl Bucket {
    /// At most so many lines, those with the most bytes; what is left out is said.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Bucket { limit }
    }
}

/// What blocks are told apart by once it is known how often they are reported. All of these stand in the result, also of no block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoarseType {
    /// In the order of [`State`](super::State).
    pub(super) of: [Breakdown; 4],
}

impl CoarseType {
    /// Of blocks that nobody reports.
    #[must_use]
    pub fn unreported(self, then: impl Into<Breakdown>) -> Self {
        self.with(0, then)
    }

    /// Of blocks that are reported once.
    #[must_use]
    pub fn once(self, then: impl Into<Breakdown>) -> Self {
        self.with(1, then)
    }

    /// Of blocks that are reported twice or more often.
    #[must_use]
    pub fn twice(self, then: impl Into<Breakdown>) -> Self {
        self.with(2, then)
    }

    /// Of blocks of a dump that does not say who reports what.
    #[must_use]
    pub fn other(self, then: impl Into<Breakdown>) -> Self {
        self.with(3, then)
    }

    /// Of all blocks.
    #[must_use]
    pub fn all(then: impl Into<Breakdown>) -> Self {
        let then = then.into();
        CoarseType { of: [then.clone(), then.clone(), then.clone(), then] }
    }

    fn with(mut self, state: usize, then: impl Into<Breakdown>) -> Self {
        self.of[state] = then.into();
        self
    }
}

/// A question with as many answers as there are, and what comes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    pub(super) axis: Axis,
    pub(super) then: Breakdown,
    pub(super) missing: Breakdown,
}

impl Split {
    /// Tells blocks apart by this, and counts what comes of it.
    #[must_use]
    pub fn by(axis: Axis) -> Self {
        Split { axis, then: Breakdown::default(), missing: Breakdown::default() }
    }

    /// What blocks with the same answer are told apart by.
    #[must_use]
    pub fn then(self, then: impl Into<Breakdown>) -> Self {
        Split { then: then.into(), ..self }
    }

    /// What blocks without an answer are told apart by. Changes nothing where there is always one.
    #[must_use]
    pub fn otherwise(self, missing: impl Into<Breakdown>) -> Self {
        let has_missing = self.axis.missing().is_some();
        if has_missing { Split { missing: missing.into(), ..self } } else { self }
    }
}

/// What blocks can be told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Axis {
    /// Where they were allocated.
    AllocationStack {
        /// Only so many frames count; all if not given.
        depth: Option<NonZeroU32>,
        /// Frames are counted and listed from the outermost one inwards.
        invert: bool,
    },
    /// Their types, as far as debug information tells; `owned by TYPE` where only their reporter does.
    Type,
    /// The source file of the innermost frame that is the program's own.
    Filename,
    /// The paths of the reports that count them.
    Reporter {
        /// Only so many segments of the path count; all if not given.
        depth: Option<NonZeroU32>,
    },
    /// The field by which they were reported.
    Field,
    /// The thread that allocated them.
    Thread,
    /// The scope of the program that they were allocated in.
    Scope,
    /// The crate whose code asked for them.
    Crate,
    /// Their usable bytes, up to powers of two.
    SizeClass,
    /// How long they have lived, where the dump says when they were allocated.
    Age {
        /// In milliseconds, from the youngest; each is the first moment of an older group.
        edges: Vec<u64>,
    },
}

/// A second, a minute and an hour.
pub const DEFAULT_EDGES: [u64; 3] = [1000, 60_000, 3_600_000];

impl Axis {
    /// The name in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Axis::AllocationStack { .. } => "allocationStack",
            Axis::Type => "type",
            Axis::Filename => "filename",
            Axis::Reporter { .. } => "reporter",
            Axis::Field => "field",
            Axis::Thread => "thread",
            Axis::Scope => "scope",
            Axis::Crate => "crate",
            Axis::SizeClass => "sizeClass",
            Axis::Age { .. } => "age",
        }
    }

    /// What stands for blocks without an answer; `None` where there is always one.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        match self {
            Axis::AllocationStack { .. } => Some("noStack"),
            Axis::Type => Some("other"),
            Axis::Filename => Some("noFilename"),
            Axis::Reporter { .. } => Some("noReporter"),
            Axis::Field => Some("noField"),
            Axis::Scope => Some("noScope"),
            Axis::Thread | Axis::Crate | Axis::Age { .. } => Some("unknown"),
            Axis::SizeClass => None,
        }
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

impl From<CoarseType> for Breakdown {
    fn from(coarse: CoarseType) -> Self {
        Breakdown::CoarseType(Box::new(coarse))
    }
}

impl From<Split> for Breakdown {
    fn from(split: Split) -> Self {
        Breakdown::Split(Box::new(split))
    }
}

impl From<Vec<Breakdown>> for Breakdown {
    fn from(several: Vec<Breakdown>) -> Self {
        Breakdown::Several(several)
    }
}
