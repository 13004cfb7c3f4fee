//! Unified differences of files.

use similar::{ChangeTag, TextDiff};
use std::fmt::Write as _;
use std::ops::Range;

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffPart {
    /// The header without the closing words: `@@ -1,6 +1,7 @@`.
    pub(crate) header: String,
    /// The lines of the new text that it shows, from 0.
    pub(crate) new_lines: Range<usize>,
    /// Its lines, each with its sign.
    pub(crate) lines: String,
}

/// The lines around a change that a difference shows.
const CONTEXT: usize = 3;

/// Returns the parts in which two texts differ.
pub(crate) fn parts(old: &str, new: &str) -> Vec<DiffPart> {
    let diff = TextDiff::from_lines(old, new);
    let mut parts = Vec::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        let ops = hunk.ops();
        let (Some(first), Some(last)) = (ops.first(), ops.last()) else { continue };
        let new_lines = first.new_range().start..last.new_range().end;
        let mut lines = String::new();
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let _ = write!(lines, "{sign}{}", change.value());
            if change.missing_newline() {
                lines.push_str("\n\\ No newline at end of file\n");
            }
        }
        parts.push(DiffPart { header: hunk.header().to_string(), new_lines, lines });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_three_lines_around_the_change() {
        let old = "a\nb\nc\nd\ne\nf\n";
        let parts = parts(old, "a\nb\nc\nd\nnew\ne\nf\n");
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].header, "@@ -2,5 +2,6 @@");
        assert_eq!(parts[0].lines, " b\n c\n d\n+new\n e\n f\n");
        assert_eq!(parts[0].new_lines, 1..7);
        assert_eq!(super::parts(old, old), []);
        assert!(super::parts("a", "b").iter().all(|part| part.lines.contains("No newline")));
    }
}
