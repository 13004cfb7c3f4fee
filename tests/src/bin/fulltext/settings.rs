//! The settings: the command line, and a JSON configuration merged over a default one.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Parser;
use memreport::{MallocSizeOf, Ops};
use serde_json::Value;

use crate::faults::Fault;
use crate::folder;
use crate::search::Ranking;

/// The settings, kept for the whole run.
pub(crate) static SETTINGS: OnceLock<Settings> = OnceLock::new();

memreport::reporter!(
    "explicit/fulltext/configuration",
    SETTINGS,
    "The configuration file as it was read, and the command line."
);

/// The default configuration, which others override.
pub(crate) const DEFAULT: &str = include_str!("default.json");

/// Indexes the words of all text files in a folder, and answers queries.
#[derive(Debug, Parser, MallocSizeOf)]
#[command(name = "fulltext")]
pub(crate) struct Arguments {
    /// The folder to index.
    pub(crate) folder: PathBuf,
    /// Queries: words, "phrases in quotes", and identifiers. Without any, the queries of the
    /// configuration.
    pub(crate) queries: Vec<String>,
    /// A JSON file whose values replace those in the default configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) configuration: Option<PathBuf>,
    /// Save a memory report here after the queries, and DMD's dump beside it. Without this, while
    /// DMD is awake, they go to the folder for temporary files.
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Save no memory report at the end, even while DMD is awake.
    #[arg(long)]
    pub(crate) no_snapshot: bool,
    /// Save another memory report here, from before the faults are planted.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Plant a fault in the memory reports, for DMD to find; may be given several times.
    #[arg(long, value_name = "FAULT", value_enum)]
    pub(crate) plant: Vec<Fault>,
}

/// All settings of the program.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Settings {
    pub(crate) arguments: Arguments,
    #[malloc_size_of(with = add_json)]
    values: Value,
    pub(crate) limits: Limits,
}

/// The numbers of the configuration.
#[derive(Clone, Copy, Debug, MallocSizeOf)]
pub(crate) struct Limits {
    pub(crate) workers: usize,
    /// Larger files are skipped.
    pub(crate) largest_file: usize,
    /// A worker merges its partial index after this many bytes of text.
    pub(crate) merge_at: u64,
    /// The number of lines shown for a query.
    pub(crate) results: usize,
    /// The cached bytes of answers, and of texts.
    pub(crate) answers: usize,
    pub(crate) texts: usize,
    pub(crate) ranking: Ranking,
}

impl Settings {
    pub(crate) fn load(arguments: Arguments) -> io::Result<Self> {
        let mut values: Value = serde_json::from_str(DEFAULT)?;
        if let Some(path) = &arguments.configuration {
            let named = |error| folder::of(path, &error);
            let text = fs::read_to_string(path).map_err(named)?;
            lay_over(&mut values, serde_json::from_str(&text).map_err(|e| named(e.into()))?);
        }
        let limits = Limits::read(&values)?;
        Ok(Settings { arguments, values, limits })
    }

    #[cfg(test)]
    pub(crate) fn embedded() -> io::Result<Self> {
        Self::load(Arguments::parse_from(["fulltext", "src", "heap"]))
    }

    pub(crate) fn skip(&self) -> Vec<&str> {
        strings(&self.values["skip"]).collect()
    }

    /// Returns the queries of the command line, or else of the configuration.
    pub(crate) fn queries(&self) -> Vec<&str> {
        let own: Vec<_> = self.arguments.queries.iter().map(String::as_str).collect();
        if own.is_empty() { strings(&self.values["queries"]).collect() } else { own }
    }
}

impl Limits {
    fn read(values: &Value) -> io::Result<Self> {
        let wrong =
            |place, what| io::Error::other(format!("configuration: \"{place}\" must be {what}"));
        let whole = |place| {
            let number = values.pointer(place).and_then(Value::as_u64);
            let number = number.and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| wrong(place, "a whole number"))
        };
        let real = |place| {
            let number = values.pointer(place).and_then(Value::as_f64);
            number.ok_or_else(|| wrong(place, "a number"))
        };
        Ok(Limits {
            workers: whole("/workers")?.max(1),
            // Offsets have 32 bits.
            largest_file: whole("/largest_file")?.min(1 << 30),
            merge_at: whole("/merge_at")? as u64,
            results: whole("/results")?,
            answers: whole("/cache/answers")?,
            texts: whole("/cache/texts")?,
            ranking: Ranking { k1: real("/ranking/k1")?, b: real("/ranking/b")? },
        })
    }
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Replaces the values of `below` that `above` has too, recursively in objects.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

/// Measures the heap of a JSON value. Its crate hides the B-tree of an object: the nodes are found
/// through the keys in them.
fn add_json<'a>(value: &'a Value, ops: &Ops<'a>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => ops.add(text),
        Value::Array(items) => {
            ops.shallow(items);
            items.iter().for_each(|item| add_json(item, ops));
        }
        Value::Object(object) => {
            let keys = object.keys().map(|key| std::ptr::from_ref(key).cast());
            ops.enclosing_blocks(keys, object.len() * size_of::<(String, Value)>());
            for (key, value) in object {
                ops.add(key);
                add_json(value, ops);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_laid_over_the_default() {
        let mut values = serde_json::json!({ "a": { "b": 1, "c": 2 }, "d": [1, 2] });
        lay_over(&mut values, serde_json::json!({ "a": { "c": 3 }, "d": [4], "e": null }));
        let expected = serde_json::json!({ "a": { "b": 1, "c": 3 }, "d": [4], "e": null });
        assert_eq!(values, expected);
    }

    #[test]
    fn a_wrong_value_is_named() {
        let mut values: Value = serde_json::from_str(DEFAULT).expect("the file is JSON");
        values["cache"]["texts"] = "many".into();
        let error = Limits::read(&values).expect_err("it is no number").to_string();
        assert_eq!(error, "configuration: \"/cache/texts\" must be a whole number");
    }

    #[test]
    fn the_settings_report_all_they_own() -> io::Result<()> {
        let mut settings = Settings::embedded()?;
        // Enough for a tree of several levels.
        settings.values["many"] =
            (0..1000).map(|n| (n.to_string(), Value::from(vec![n; 3]))).collect();
        assert_eq!(settings.queries(), ["heap"]);
        dmd::assert_fully_reported!(settings);
        Ok(())
    }
}
