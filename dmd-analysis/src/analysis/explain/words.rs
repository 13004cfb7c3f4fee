//! Words that the summary and the records share.

use std::io::{self, Write};

use crate::analysis::number::commas;
use crate::read::WrongKind;

/// Returns the name of a kind of wrong reports, as in the dump.
pub(crate) fn kind_name(kind: WrongKind) -> &'static str {
    match kind {
        WrongKind::NonHeap => "non-heap",
        WrongKind::Interior => "interior",
        WrongKind::Partial => "partial",
        WrongKind::FreedSince => "freed since",
        WrongKind::Other => "of an unknown kind",
    }
}

/// Writes a line with the suggestion, if there is one.
pub(super) fn write_suggestion(
    indent: &str,
    suggestion: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    suggestion.map_or(Ok(()), |suggestion| writeln!(out, "{indent}→ {suggestion}"))
}

/// Returns `1 byte`, `2 bytes`.
pub(super) fn bytes(n: i128) -> String {
    count(n, "byte")
}

/// Returns `1 block`, `2 blocks`.
pub(super) fn count(n: i128, what: &str) -> String {
    format!("{} {what}{}", commas(n), if n == 1 { "" } else { "s" })
}

/// Returns `1 report is`, `2 reports are`.
pub(super) fn count_are(n: i128, what: &str) -> String {
    format!("{} {}", count(n, what), if n == 1 { "is" } else { "are" })
}
