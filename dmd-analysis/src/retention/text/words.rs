//! Words, and text cut to the width of a line.

use crate::analysis::number::counted;
use crate::analysis::shorten;

/// The number of columns that a cut text keeps at least.
const MIN_COLUMNS: usize = 24;

/// Returns the text, without its middle if it is too long for a line with `before` columns in
/// front.
pub(super) fn cut(text: &str, width: usize, before: usize) -> String {
    match width {
        0 => text.to_owned(),
        width => shorten(text, width.saturating_sub(before).max(MIN_COLUMNS)),
    }
}

/// Returns a name that fits into the line. A long name is cut in two parts, at its last comma.
pub(super) fn fit(name: &str, width: usize, before: usize) -> String {
    let room = width.saturating_sub(before).max(MIN_COLUMNS);
    match name.rfind(", ").map(|comma| name.split_at(comma)) {
        Some((what, site)) if width > 0 && name.chars().count() > room => {
            let left = room.saturating_sub(what.chars().count());
            let site = shorten(site, left.max(room / 2));
            shorten(what, room - site.chars().count()) + &site
        }
        _ => cut(name, width, before),
    }
}

/// Returns `1 byte`, `2 bytes`.
pub(super) fn bytes(number: u64) -> String {
    count(number, "byte")
}

/// Returns `1 block`, `2 blocks`.
pub(super) fn count(number: u64, what: &str) -> String {
    counted(number.into(), what)
}
