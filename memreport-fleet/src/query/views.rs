//! The views of a dataset's tables that questions read, in the words of each engine.

use std::collections::HashSet;
use std::path::Path;

use super::engine::EngineName;
use super::literal;
use crate::schema::{Column, Kind, SYMBOLS, TABLES, Table, VERSION};

/// The part of a dataset that a question is about. Files of other partitions are not opened.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The only service.
    pub service: Option<String>,
    /// The first day, `2026-11-24`.
    pub since: Option<String>,
    /// The last day.
    pub until: Option<String>,
}

/// A view that an engine defines before a question.
#[derive(Debug, Clone)]
pub struct View {
    /// The name of the table.
    pub name: &'static str,
    /// The folder with its files; `None` if there are none.
    pub folder: Option<String>,
    /// The columns with their types, `snapshot_id STRING, …`.
    pub columns: String,
    /// The condition on partitions; empty for none.
    pub condition: String,
}

/// Returns the tables that questions read: those whose names occur in their texts, apart from
/// comments.
#[must_use]
pub fn tables_of(questions: &[String]) -> Vec<&'static Table> {
    let lines = questions.iter().flat_map(|question| question.lines());
    let code = lines.filter_map(|line| line.split("--").next());
    let words: HashSet<String> = code
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .map(str::to_ascii_lowercase)
        .collect();
    let all = TABLES.into_iter().chain([&SYMBOLS]);
    all.filter(|table| words.contains(table.name)).collect()
}

/// Returns the views of these tables of a dataset.
#[must_use]
pub fn views(
    engine: EngineName,
    dataset: &Path,
    tables: &[&'static Table],
    filter: &Filter,
) -> Vec<View> {
    tables
        .iter()
        .map(|table| {
            let folder = dataset.join(format!("v{VERSION}/{}", table.name));
            let columns: Vec<String> = table
                .all_columns()
                .map(|Column { name, kind, .. }| format!("{name} {}", type_name(engine, *kind)))
                .collect();
            View {
                name: table.name,
                folder: folder.is_dir().then(|| folder.display().to_string()),
                columns: columns.join(", "),
                condition: condition(table, filter),
            }
        })
        .collect()
}

fn condition(table: &Table, filter: &Filter) -> String {
    if !table.has_key {
        return String::new();
    }
    let parts =
        [("service =", &filter.service), ("date >=", &filter.since), ("date <=", &filter.until)];
    let parts = parts
        .into_iter()
        .filter_map(|(start, value)| Some(format!("{start} {}", literal(value.as_deref()?))));
    parts.collect::<Vec<_>>().join(" AND ")
}

fn type_name(engine: EngineName, kind: Kind) -> &'static str {
    let [int, text, bool, texts, ints] = match engine {
        EngineName::DuckDb => ["BIGINT", "VARCHAR", "BOOLEAN", "VARCHAR[]", "BIGINT[]"],
        EngineName::ClickHouse => [
            "Nullable(Int64)",
            "Nullable(String)",
            "Nullable(Bool)",
            "Array(Nullable(String))",
            "Array(Nullable(Int64))",
        ],
        EngineName::Spark => ["BIGINT", "STRING", "BOOLEAN", "ARRAY<STRING>", "ARRAY<BIGINT>"],
    };
    match kind {
        Kind::Int => int,
        Kind::Text => text,
        Kind::Bool => bool,
        Kind::Texts => texts,
        Kind::Ints => ints,
    }
}

impl View {
    /// Returns the statement that defines the view, for engines that take SQL alone.
    #[must_use]
    pub fn statement(&self, engine: EngineName) -> String {
        let View { name, folder, columns, condition } = self;
        let names: Vec<&str> =
            columns.split(", ").filter_map(|column| column.split(' ').next()).collect();
        let names = names.join(", ");
        let Some(folder) = folder else { return self.empty(engine) };
        let condition = match condition.as_str() {
            "" => String::new(),
            condition => format!(" WHERE {condition}"),
        };
        let files = literal(&format!("{folder}/**/*.parquet"));
        match engine {
            EngineName::DuckDb => format!(
                "CREATE VIEW {name} AS SELECT {names} FROM read_parquet({files}, \
                 hive_partitioning = true, hive_types_autocast = false, union_by_name = true)\
                 {condition}"
            ),
            EngineName::ClickHouse => {
                let partitions = match name {
                    &"symbols" => "build String",
                    _ => "service String, version String, date String, host String",
                };
                let structure = literal(&format!("{columns}, {partitions}"));
                format!(
                    "CREATE VIEW {name} AS SELECT {names} FROM file({files}, Parquet, {structure})\
                     {condition}"
                )
            }
            EngineName::Spark => String::new(),
        }
    }

    /// Returns the statement of a table without files.
    fn empty(&self, engine: EngineName) -> String {
        let View { name, columns, .. } = self;
        match engine {
            EngineName::ClickHouse => {
                format!("CREATE TABLE {name} ({columns}) ENGINE = Memory")
            }
            _ => format!("CREATE TABLE {name} ({columns})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_reads_the_tables_that_it_names() {
        let names = |text: &str| -> Vec<_> {
            tables_of(&[text.to_owned()]).iter().map(|table| table.name).collect()
        };
        assert_eq!(names("-- Which blocks?\nSELECT 1 FROM Snapshots s"), ["snapshots"]);
        assert_eq!(names("SELECT sum(b.blocks) FROM reports, stacks_of"), ["reports", "blocks"]);
        assert_eq!(names("SELECT '--'"), [""; 0]);
    }
}
