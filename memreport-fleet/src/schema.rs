//! The tables of a dataset: their columns, with types, units and meanings.
//!
//! The definitions here make the files and the documentation. Columns are only ever added, at the
//! end of a table and nullable, so that older queries read newer files. A change that older queries
//! would read wrongly gets a new [`VERSION`], which is part of every path.

mod columns;

pub use columns::{BLOCKS, REPORTS, RETENTION, SNAPSHOTS, STACKS, SYMBOLS, TIMELINE};

use std::fmt::Write;

/// The version of the layout, the first folder of every path.
pub const VERSION: u32 = 1;

/// A table of a dataset.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, the second folder of every path.
    pub name: &'static str,
    /// The meaning of a row.
    pub row: &'static str,
    /// The columns of this table, behind those of all tables.
    pub columns: &'static [Column],
    /// True if rows belong to a snapshot, so that the table has the columns of [`KEY`].
    pub has_key: bool,
}

/// A column of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The unit of a number, and the meaning.
    pub meaning: &'static str,
    /// The attribute of OpenTelemetry's resources that it contains.
    pub attribute: Option<&'static str>,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 64 bits, with a sign.
    Int,
    /// A text in UTF-8.
    Text,
    /// True or false.
    Bool,
    /// A list of texts, whose elements may be null.
    Texts,
    /// A list of whole numbers, whose elements may be null.
    Ints,
}

impl Kind {
    /// Returns its name in the documentation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Int => "int64",
            Kind::Text => "text",
            Kind::Bool => "bool",
            Kind::Texts => "list of text",
            Kind::Ints => "list of int64",
        }
    }
}

/// All tables, in the order in which their files are shipped: `snapshots` comes last, so that a
/// snapshot is there once all its rows are.
pub const TABLES: [&Table; 6] = [&STACKS, &REPORTS, &BLOCKS, &RETENTION, &TIMELINE, &SNAPSHOTS];

/// The columns that rows of a snapshot begin with.
pub const KEY: &[Column] = columns::KEY;

impl Table {
    /// Returns all columns in the order of the file.
    pub fn all_columns(&self) -> impl Iterator<Item = &'static Column> + use<> {
        let key = if self.has_key { KEY } else { &[] };
        key.iter().chain(self.columns)
    }

    /// Returns the table of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<&'static Table> {
        TABLES.into_iter().chain([&SYMBOLS]).find(|table| table.name == name)
    }
}

/// Returns the documentation of all tables as Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::new();
    let mut section = |title: &str, about: &str, columns: &[Column]| {
        let _ =
            write!(text, "### {title}\n\n{about}\n\n| column | type | meaning |\n|---|---|---|\n");
        for Column { name, kind, meaning, attribute } in columns {
            let attribute = attribute.map(|name| format!(" (`{name}`)")).unwrap_or_default();
            let _ = writeln!(text, "| `{name}` | {} | {meaning}{attribute} |", kind.name());
        }
        text.push('\n');
    };
    section("Columns of every table but `symbols`", "They come first.", KEY);
    for table in TABLES.into_iter().rev().chain([&SYMBOLS]) {
        section(&format!("`{}`", table.name), table.row, table.columns);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_is_of_these_columns() {
        let page = include_str!("../../docs/fleet.md");
        assert!(
            page.contains(&markdown()),
            "docs/fleet.md needs the text of `cargo run -p memreport-fleet -- schema`"
        );
    }

    #[test]
    fn no_column_is_there_twice() {
        for table in TABLES.into_iter().chain([&SYMBOLS]) {
            let mut names: Vec<_> = table.all_columns().map(|column| column.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", table.name);
        }
    }
}
