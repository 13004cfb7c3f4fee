//! Writes the typed tree of a heap: which static owns which blocks, through which fields.

pub(crate) mod difference;
pub(crate) mod json;
pub(crate) mod text;

use memreport_analysis::analysis::commas;
use memreport_analysis::ownership::{OwnerRow, RowKind};

/// The part of a tree that is shown.
#[derive(Debug)]
pub(crate) struct Shown<'t> {
    /// The levels below the roots.
    pub(crate) depth: usize,
    /// The smallest share of the heap that gets a line of its own, in percent.
    pub(crate) min: f64,
    /// A text that a row, one above it or one below it has in its name; empty for all rows.
    pub(crate) filter: &'t str,
    /// The width of the terminal.
    pub(crate) columns: usize,
    /// True if only blocks that no reporter reported are in the tree.
    pub(crate) unreported: bool,
}

impl Shown<'_> {
    /// Returns the rows that pass the filter, with the bytes that pass it.
    pub(crate) fn filtered(&self, rows: &[OwnerRow]) -> Vec<OwnerRow> {
        rows.iter().filter_map(|row| self.filter_row(row)).collect()
    }

    fn filter_row(&self, row: &OwnerRow) -> Option<OwnerRow> {
        if row.name.contains(self.filter) {
            return Some(row.clone());
        }
        let children = self.filtered(&row.children);
        let bytes = children.iter().map(|child| child.bytes).fold(0, u64::saturating_add);
        // What the row itself has does not pass, so that a sum is of what is named alone.
        let mut row = row.clone();
        (row.bytes, row.own, row.blocks, row.typed) = (bytes, 0, 0, 0);
        (row.used, row.places, row.spare) = (0, 0, 0);
        (row.compared, row.copies, row.copied_blocks) = (0, 0, 0);
        row.children = children;
        (!row.children.is_empty()).then_some(row)
    }
}

/// Returns a change: with a sign, unless it is 0.
fn signed(number: i128) -> String {
    if number > 0 { format!("+{}", commas(number)) } else { commas(number) }
}

/// Returns the lines of the tree before a row, and before the rows below it.
fn branch(level: usize, is_last: bool) -> (&'static str, &'static str) {
    match (level, is_last) {
        (0, _) => ("", ""),
        (_, true) => ("└─ ", "   "),
        (_, false) => ("├─ ", "│  "),
    }
}

/// Returns the name of a row with the marks of its kind.
fn marked(name: &str, kind: RowKind, is_uncertain: bool) -> String {
    let doubt = if is_uncertain { "? " } else { "" };
    let kind = match kind {
        RowKind::Static => "static ",
        RowKind::Shared => "(shared) ",
        _ => "",
    };
    format!("{doubt}{kind}{name}")
}
