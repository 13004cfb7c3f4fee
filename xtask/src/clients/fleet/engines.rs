//! DuckDB, ClickHouse and Spark answer every question on the same dataset: equal answers, and sums
//! that equal the sums of single files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::truth::{Figures, of_files};
use super::{Bench, json, output};
use crate::failure::Failure;

/// The sums of each file, and the name that they have in [`Figures`].
const SUMS: &str = include_str!("engines/sums.sql");

/// The engines with their modules and packages.
const ENGINES: [(&str, [&str; 2]); 3] = [
    ("duckdb", ["duckdb", "duckdb"]),
    ("clickhouse", ["chdb", "chdb"]),
    ("spark", ["pyspark", "pyspark"]),
];

/// Returns whether all engines that are installed agree.
pub(super) fn run(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let (dataset, files) = (bench.folder.join("dataset"), bench.folder.join("files"));
    let mut generate = Command::new(Bench::example("generate_fleet")?);
    generate.args(["--hosts", "24", "--days", "7", "--reports", "2", "--dumps", "1"]);
    output(generate.arg("--files").arg(&files).arg("--output").arg(&dataset))?;
    let truth = of_files(bench, &files)?;
    let sums = bench.folder.join("sums.sql");
    fs::write(&sums, SUMS)?;
    let mut first: Option<(&str, Value)> = None;
    let mut holds = true;
    for (engine, module) in ENGINES {
        if !bench.has_module(engine, module, out)? {
            continue;
        }
        let found = figures(&ask(bench, engine, &sums.to_string_lossy(), &dataset)?)?;
        let wrong = differences(&found, &truth);
        let mut answers = ask(bench, engine, "all", &dataset)?;
        answers["regression"] = ask(bench, engine, "regression", &dataset)?;
        let empty: Vec<&String> = answers
            .as_object()
            .ok_or("answers are no object")?
            .iter()
            .filter(|(_, rows)| rows.as_array().is_none_or(Vec::is_empty))
            .map(|(name, _)| name)
            .collect();
        let (reference, is_equal) = match &first {
            Some((name, reference)) => (*name, *reference == answers),
            None => (engine, true),
        };
        let rows: usize = answers
            .as_object()
            .into_iter()
            .flat_map(|answers| answers.values())
            .map(|rows| rows.as_array().map_or(0, Vec::len))
            .sum();
        let is_right = wrong.is_empty() && empty.is_empty() && is_equal;
        holds &= is_right;
        writeln!(
            out,
            "clients fleet {engine}: {}: {} sums of single files, {} of them different; {} \
             questions with {rows} rows, {} to those of {reference}",
            if is_right { "passed" } else { "FAILED" },
            truth.len(),
            wrong.len(),
            answers.as_object().map_or(0, serde_json::Map::len),
            if is_equal { "equal" } else { "NOT EQUAL" },
        )?;
        for line in wrong.iter().take(5) {
            writeln!(out, "  {line}")?;
        }
        for name in empty {
            writeln!(out, "  {name} has no rows")?;
        }
        first.get_or_insert((engine, answers));
    }
    see_planted_difference(&truth)?;
    Ok(holds)
}

/// Checks that the check can fail: one byte less is seen.
fn see_planted_difference(truth: &Figures) -> Result<(), Failure> {
    let mut damaged = truth.clone();
    if let Some(sum) = damaged.values_mut().next() {
        *sum -= 1;
    }
    let count = differences(&damaged, truth).len();
    if count == 1 { Ok(()) } else { Err("a planted difference was not seen".into()) }
}

fn ask(bench: &Bench, engine: &str, question: &str, dataset: &Path) -> Result<Value, Failure> {
    let mut command = Command::new(&bench.fleet);
    command.args(["query", question]).arg(dataset);
    command.args(["--engine", engine, "--python", &bench.python, "--format", "json"]);
    if question == "regression" {
        command.args(["--service", "service-0", "--before", "1.1.0", "--after", "1.2.0"]);
    }
    // A cluster of two workers, each a process of its own.
    json(command.env("MEMREPORT_SPARK_MASTER", "local-cluster[2,1,1024]"))
}

/// Returns the figures of an engine: rows of `name` and `bytes`.
fn figures(rows: &Value) -> Result<Figures, Failure> {
    let mut figures = BTreeMap::new();
    for row in rows.as_array().ok_or("an answer is no list")? {
        let name = row["name"].as_str().ok_or("a sum without a name")?;
        let bytes = row["bytes"].as_i64().ok_or("a sum is no whole number")?;
        figures.insert(name.to_owned(), bytes);
    }
    Ok(figures)
}

/// Returns a line for each figure that is not the same.
fn differences(found: &Figures, truth: &Figures) -> Vec<String> {
    let names = found.keys().chain(truth.keys().filter(|name| !found.contains_key(*name)));
    let differ = names.filter(|name| found.get(*name) != truth.get(*name));
    differ
        .map(|name| format!("{name}: {:?} instead of {:?}", found.get(name), truth.get(name)))
        .collect()
}
