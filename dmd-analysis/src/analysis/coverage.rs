//! How much of the heap is reported exactly once: by crate, by type, by field, and what would help most.

use std::collections::HashMap;
use std::{error, fmt};

use super::by::{Group, group_by};
use super::sites::{ExplainOptions, Explained, explain, mode};
use super::{Class, Totals};
use crate::axis::Axis;
use crate::read::{Dump, FieldPlace, Mode, Sum, WrongKind};

/// How the reporters of a program cover its heap.
#[derive(Debug)]
#[non_exhaustive]
pub struct Coverage {
    /// The program's file.
    pub program: Option<String>,
    /// The figures are estimates from a sample.
    pub is_sampled: bool,
    /// All blocks of the dump: once, dark and twice together.
    pub heap: Totals,
    /// Blocks that are reported once.
    pub once: Totals,
    /// Blocks that nobody reports.
    pub dark: Totals,
    /// Blocks that are reported twice or more often.
    pub twice: Totals,
    /// Bytes of reported blocks that partial reports leave out.
    pub left_out: i128,
    /// Live blocks that the tracker was never told of. No figure above has them.
    pub untracked: Sum,
    /// By the crate that asked for the blocks, largest first.
    pub crates: Vec<Group>,
    /// By type, largest first.
    pub types: Vec<Group>,
    /// By the field or path that reports them, largest first.
    pub reporters: Vec<Group>,
    /// Fields that were measured in this collection.
    pub measured: Vec<FieldPlace>,
    /// Fields that no collection measures, with the reasons.
    pub skipped: Vec<FieldPlace>,
    /// What to do, and how many bytes of the heap each remedy is about; most first.
    pub remedies: Vec<(String, i128)>,
}

impl Coverage {
    /// Bytes that are counted exactly once, for each hundred in the heap.
    ///
    /// That is 100 × (once − left out) / heap.
    #[must_use]
    pub fn score(&self) -> f64 {
        super::number::percent(self.exactly_once(), self.heap.usable())
    }

    /// Bytes that are counted exactly once.
    #[must_use]
    pub fn exactly_once(&self) -> i128 {
        (self.once.usable() - self.left_out).max(0)
    }
}

/// The dump does not say who reports what.
#[derive(Debug, PartialEq, Eq)]
pub struct NoReports;

impl fmt::Display for NoReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a dump of this mode does not say who reports what: take one with DMD=1")
    }
}

impl error::Error for NoReports {}

/// Adds up how a dump is covered.
///
/// # Errors
///
/// If the dump has no reports.
pub fn coverage(dump: &Dump, options: &ExplainOptions) -> Result<Coverage, NoReports> {
    if mode(dump) != Mode::DarkMatter {
        return Err(NoReports);
    }
    let explained = explain(dump, options);
    let ours = dump.extension.as_ref();
    let partial = explained.wrong.iter().filter(|wrong| wrong.kind == WrongKind::Partial);
    Ok(Coverage {
        program: ours.and_then(|ours| ours.program.clone()),
        is_sampled: explained.sampled.is_some(),
        heap: explained.heap,
        once: explained.totals(Class::OnceReported),
        dark: explained.totals(Class::Unreported),
        twice: explained.totals(Class::TwiceReported),
        left_out: partial.map(|wrong| wrong.missing().max(0)).sum(),
        untracked: explained.untracked,
        crates: group_by(dump, &Axis::Crate, options),
        types: group_by(dump, &Axis::Type, options),
        reporters: group_by(dump, &Axis::Field, options),
        measured: ours.map(|ours| ours.measured.clone()).unwrap_or_default(),
        skipped: ours.map(|ours| ours.skipped.clone()).unwrap_or_default(),
        remedies: remedies(&explained),
    })
}

/// Each remedy once, with the bytes that it is about.
fn remedies(explained: &Explained) -> Vec<(String, i128)> {
    let mut sums: HashMap<&str, i128> = HashMap::new();
    let places = [Class::Unreported, Class::TwiceReported].map(|class| explained.places(class));
    for place in places.into_iter().flatten() {
        if let Some(remedy) = &place.remedy {
            *sums.entry(remedy).or_default() += place.totals.usable();
        }
    }
    for wrong in &explained.wrong {
        if let Some(remedy) = &wrong.remedy {
            *sums.entry(remedy).or_default() += wrong.missing().abs();
        }
    }
    let mut sums: Vec<(String, i128)> =
        sums.into_iter().map(|(remedy, bytes)| (remedy.to_owned(), bytes)).collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums
}
