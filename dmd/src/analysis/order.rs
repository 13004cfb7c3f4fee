//! Which records are shown, and in which order.

use super::Record;

/// What records are sorted by: largest absolute value first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortBy {
    /// Usable bytes, then requested bytes.
    #[default]
    Usable,
    /// Requested bytes.
    Req,
    /// Slop bytes.
    Slop,
    /// Number of blocks, then usable bytes, then requested bytes.
    NumBlocks,
}

impl SortBy {
    /// Sorts `records`; equal ones keep their order.
    pub fn sort(self, records: &mut [&Record]) {
        records.sort_by_cached_key(|record| {
            let totals = &record.totals;
            let (blocks, usable) = (totals.blocks.unsigned_abs(), totals.usable().unsigned_abs());
            let (req, slop) = (totals.req.unsigned_abs(), totals.slop.unsigned_abs());
            std::cmp::Reverse(match self {
                Self::Usable => (usable, req, 0),
                Self::Req => (req, 0, 0),
                Self::Slop => (slop, 0, 0),
                Self::NumBlocks => (blocks, usable, req),
            })
        });
    }
}

/// Keeps records by a text in the lines of their allocation stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    text: String,
    wanted: bool,
}

impl Filter {
    /// A filter as on the command line: a text that some frame must hold; `!text` if none may; `\!text` for one that
    /// starts with `!`.
    #[must_use]
    pub fn new(argument: &str) -> Self {
        if let Some(text) = argument.strip_prefix('\\') {
            Self { text: text.to_owned(), wanted: true }
        } else if let Some(text) = argument.strip_prefix('!') {
            Self { text: text.to_owned(), wanted: false }
        } else {
            Self { text: argument.to_owned(), wanted: true }
        }
    }

    pub(super) fn keeps(&self, lines: &[String]) -> bool {
        lines.iter().any(|line| line.contains(&self.text)) == self.wanted
    }
}
