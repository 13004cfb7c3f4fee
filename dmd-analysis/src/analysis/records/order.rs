//! The order of records, and filters by their stacks.

use super::record::Record;

/// The value that records are sorted by, largest absolute value first.
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
    /// Returns the first `most` of `records` in this order. Equal records keep their order.
    #[must_use]
    pub fn first(self, records: Vec<&Record>, most: usize) -> Vec<&Record> {
        let key = |&(at, record): &(usize, &Record)| (std::cmp::Reverse(self.key(record)), at);
        let mut numbered: Vec<(usize, &Record)> = records.into_iter().enumerate().collect();
        if most < numbered.len() {
            numbered.select_nth_unstable_by_key(most, key);
            numbered.truncate(most);
        }
        numbered.sort_unstable_by_key(key);
        numbered.into_iter().map(|(_, record)| record).collect()
    }

    fn key(self, record: &Record) -> [u128; 3] {
        let totals = &record.totals;
        let usable = totals.usable().unsigned_abs();
        let req = totals.req.unsigned_abs();
        match self {
            Self::Usable => [usable, req, 0],
            Self::Req => [req, 0, 0],
            Self::Slop => [totals.slop.unsigned_abs(), 0, 0],
            Self::NumBlocks => [totals.blocks.unsigned_abs(), usable, req],
        }
    }
}

/// A filter of records by a text in the lines of their allocation stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    text: String,
    wanted: bool,
}

impl Filter {
    /// Parses a filter of the command line.
    ///
    /// `text` keeps records with the text in some frame, `!text` those without it, and `\!text`
    /// stands for a text that starts with `!`.
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

    /// Returns whether a record with these lines is kept.
    pub(crate) fn keeps(&self, lines: &[String]) -> bool {
        lines.iter().any(|line| line.contains(&self.text)) == self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Grouping, Stacks, digest};
    use crate::read::read_slice;

    #[test]
    fn the_first_are_the_same_however_many_are_taken() {
        let text = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},
            "blockList":[{"req":10,"alloc":"A"},{"req":40,"alloc":"B"},{"req":20,"alloc":"C"}],
            "traceTable":{"A":["A"],"B":["B"],"C":["C"]},
            "frameTable":{"A":"#00: a","B":"#00: b","C":"#00: c"}}"##;
        let dump = read_slice(text.as_bytes()).unwrap();
        let digest = digest(&dump, &Grouping::default(), &mut Stacks::default());
        for most in 0..5 {
            let records: Vec<&Record> = digest.sections[0].records.iter().collect();
            let first = SortBy::Req.first(records, most);
            let sizes: Vec<i128> = first.iter().map(|record| record.totals.req).collect();
            assert_eq!(sizes, [40, 20, 10][..most.min(3)]);
        }
    }
}
