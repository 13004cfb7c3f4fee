//! The vocabulary for grouping blocks: axes, the words for them, and the key of a block on an axis.
//!
//! Every command, page and library entry that groups blocks takes an [`Axis`], or several of them
//! as a [`GroupBy`]. A source of blocks implements [`Attributes`]; [`key`] forms the keys for all
//! of them.
//!
//! # Examples
//!
//! ```
//! use memreport_analysis::axis::{Axis, GroupBy};
//!
//! let group_by: GroupBy = "reporter:2,types".parse()?;
//! assert_eq!(group_by.axes()[1], Axis::Type);
//!
//! let error = "kind".parse::<Axis>().unwrap_err();
//! assert!(error.to_string().starts_with("cannot group by `kind`; known are reporter, type, "));
//! # Ok::<(), memreport_analysis::axis::AxisError>(())
//! ```

mod words;
mod error;
mod group_by;
mod state;
mod ranges;
mod key;

#[cfg(test)]
mod tests;

pub use error::AxisError;
pub use group_by::GroupBy;
pub use key::{Attributes, Key, distinct, key, thread_text};
pub use state::ReportState;
pub use words::Word;

pub(crate) use ranges::age_place;

use std::num::NonZeroU32;

/// A property that blocks are grouped by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Axis {
    /// The paths of the reports that count them.
    Reporter {
        /// The number of segments of a path that count; all if `None`.
        depth: Option<NonZeroU32>,
    },
    /// Their type, as far as debug information contains it.
    Type,
    /// The call stack that allocated them.
    Stack(StackCut),
    /// The innermost frame of the program's own code in that stack.
    Site,
    /// The number of reports that count them: none, one or several.
    State,
    /// The source file of the innermost frame of the program's own code.
    File,
    /// The type and field that report them.
    Field,
    /// The thread that allocated them.
    Thread,
    /// The scope of the program that they were allocated in: `request > search`.
    Scope,
    /// The crate whose code allocated them.
    Crate,
    /// Their usable bytes.
    Size,
    /// Their usable bytes, in classes up to powers of two.
    SizeClass,
    /// The time since their allocation, where the dump contains it.
    Age {
        /// The first milliseconds of each group but the youngest, in ascending order.
        edges: Vec<u64>,
    },
}

/// The part of a call stack that counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackCut {
    /// The number of frames; all if `None`.
    pub depth: Option<NonZeroU32>,
    /// True if frames are counted and listed from the outermost one inwards.
    pub invert: bool,
}

/// The edges of [`Axis::age`]: a second, a minute and an hour.
pub const DEFAULT_EDGES: [u64; 3] = [1000, 60_000, 3_600_000];

impl Axis {
    /// Returns the axis of whole call stacks.
    #[must_use]
    pub fn stack() -> Self {
        Axis::Stack(StackCut::default())
    }

    /// Returns the axis of whole report paths.
    #[must_use]
    pub fn reporter() -> Self {
        Axis::Reporter { depth: None }
    }

    /// Returns the axis of ages with the [`DEFAULT_EDGES`].
    #[must_use]
    pub fn age() -> Self {
        Axis::Age { edges: DEFAULT_EDGES.into() }
    }
}

impl StackCut {
    /// Returns the frames that count, of all frames from the innermost outwards.
    #[must_use]
    pub fn apply<T>(self, mut frames: Vec<T>) -> Vec<T> {
        if self.invert {
            frames.reverse();
        }
        frames.truncate(self.depth.map_or(usize::MAX, |depth| depth.get() as usize));
        frames
    }
}
