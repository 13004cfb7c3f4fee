//! Coverage: the share of the heap that is reported exactly once, by crate, type and field, with
//! suggestions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::{error, fmt};

use super::by::{Group, group_by};
use super::explain::{Explained, Place, explain};
use super::frames::BlockType;
use super::options::ExplainOptions;
use super::records::{Class, Totals, UNTRACKED, mode};
use crate::axis::Axis;
use crate::read::{Dump, FieldPlace, Mode, Sum, WrongKind};

/// The coverage of a program's heap by its reporters.
#[derive(Debug)]
#[non_exhaustive]
pub struct Coverage {
    /// The program's file.
    pub program: Option<String>,
    /// True if the figures are estimates from a sample.
    pub is_sampled: bool,
    /// All blocks: reported once, twice, and never, and untracked.
    pub heap: Totals,
    /// Blocks that are reported once.
    pub once: Totals,
    /// Blocks that no reporter reports.
    pub unreported: Totals,
    /// Blocks that are reported twice or more often.
    pub twice: Totals,
    /// Bytes of reported blocks that partial reports leave out.
    pub under_reported: i128,
    /// Live blocks from before tracking began or while it was off. No group contains them.
    pub untracked: Sum,
    /// The groups by the crate that allocated the blocks, largest first.
    pub crates: Vec<Group>,
    /// The groups by type, largest first.
    pub types: Vec<Group>,
    /// The groups by the field or path that reports the blocks, largest first.
    pub reporters: Vec<Group>,
    /// Fields that were measured in this collection.
    pub measured: Vec<FieldPlace>,
    /// Fields that no collection measures, with the reasons.
    pub skipped: Vec<FieldPlace>,
    /// The suggestions, the one for most bytes first.
    pub suggestions: Vec<Suggestion>,
}

/// A change to the code, and the blocks that it would cover or correct.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suggestion {
    /// The change, in one line.
    pub text: String,
    /// The bytes of the heap that it is about.
    pub bytes: i128,
}

impl Coverage {
    /// Returns the bytes that are counted exactly once, in percent of the heap.
    ///
    /// That is 100 × (once − under-reported) / heap.
    #[must_use]
    pub fn score(&self) -> f64 {
        super::number::percent(self.exactly_once(), self.heap.usable())
    }

    /// Returns the bytes that are counted exactly once.
    #[must_use]
    pub fn exactly_once(&self) -> i128 {
        (self.once.usable() - self.under_reported).max(0)
    }
}

/// The error for a dump that does not contain reports.
#[derive(Debug, PartialEq, Eq)]
pub struct NoReports;

impl fmt::Display for NoReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a dump of this mode does not say who reports what: take one with DMD=1")
    }
}

impl error::Error for NoReports {}

/// Computes the coverage of a dump.
///
/// # Errors
///
/// If the dump has no reports.
pub fn coverage(dump: &Dump, options: &ExplainOptions) -> Result<Coverage, NoReports> {
    if mode(dump) != Mode::DarkMatter {
        return Err(NoReports);
    }
    coverage_of(dump, &explain(dump, options), options)
}

/// Computes the coverage of a dump that is explained with the same options.
///
/// # Errors
///
/// If the dump has no reports.
pub fn coverage_of(
    dump: &Dump,
    explained: &Explained,
    options: &ExplainOptions,
) -> Result<Coverage, NoReports> {
    if explained.mode != Mode::DarkMatter {
        return Err(NoReports);
    }
    let ours = dump.extension.as_ref();
    let partial = explained.wrong.iter().filter(|wrong| wrong.kind == WrongKind::Partial);
    let groups = |axis: &Axis| {
        let mut groups = group_by(dump, axis, options);
        groups.retain(|group| group.name != UNTRACKED);
        groups
    };
    Ok(Coverage {
        program: ours.and_then(|ours| ours.program.clone()),
        is_sampled: explained.sampled.is_some(),
        heap: explained.heap,
        once: explained.totals(Class::OnceReported),
        unreported: explained.totals(Class::Unreported),
        twice: explained.totals(Class::TwiceReported),
        under_reported: partial.map(|wrong| wrong.missing().max(0)).sum(),
        untracked: explained.untracked,
        crates: groups(&Axis::Crate),
        types: groups(&Axis::Type),
        reporters: groups(&Axis::Field),
        measured: ours.map(|ours| ours.measured.clone()).unwrap_or_default(),
        skipped: ours.map(|ours| ours.skipped.clone()).unwrap_or_default(),
        suggestions: suggestions(explained),
    })
}

/// Returns what is known of an unreported place without a suggestion: its type, and the program's
/// own frame.
fn without_hint(place: &Place) -> String {
    let site = &place.site;
    let blocks = match &site.block_type {
        BlockType::Known(name) => format!("`{name}`"),
        _ => "blocks of unknown type".to_owned(),
    };
    match site.own.as_ref().or(site.frames.first()) {
        Some(frame) => format!("report {blocks} that {frame} allocates"),
        None => format!("report {blocks} without a stack: take one with --stacks=full"),
    }
}

/// Returns each suggestion once, with the bytes of all places that have it.
fn suggestions(explained: &Explained) -> Vec<Suggestion> {
    let mut sums: HashMap<Cow<'_, str>, i128> = HashMap::new();
    let places = [Class::Unreported, Class::TwiceReported].map(|class| explained.places(class));
    for place in places.into_iter().flatten() {
        let text = match &place.suggestion {
            Some(suggestion) => Cow::from(suggestion),
            None if place.reporters.is_empty() => without_hint(place).into(),
            None => continue,
        };
        *sums.entry(text).or_default() += place.totals.usable();
    }
    for wrong in &explained.wrong {
        if let Some(suggestion) = &wrong.suggestion {
            *sums.entry(suggestion.into()).or_default() += wrong.missing().abs();
        }
    }
    let mut suggestions: Vec<Suggestion> = sums
        .into_iter()
        .map(|(text, bytes)| Suggestion { text: text.into_owned(), bytes })
        .collect();
    suggestions.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.text.cmp(&b.text)));
    suggestions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::tests::HEAP;
    use crate::read::read_slice;

    #[test]
    fn a_place_without_a_suggestion_is_named_by_its_type_and_function() {
        let dump = read_slice(HEAP.as_bytes()).unwrap();
        let coverage = coverage(&dump, &ExplainOptions::default()).unwrap();
        let texts: Vec<&str> = coverage.suggestions.iter().map(|one| one.text.as_str()).collect();
        let has = |part: &str| texts.iter().any(|text| text.contains(part));
        assert!(has("report `[u8]` that shop::load"), "{texts:#?}");
        assert!(has("report blocks of unknown type that"), "{texts:#?}");
        assert!(has("without a stack: take one with --stacks=full"), "{texts:#?}");
    }
}
