//! `memreport-fleet query QUESTION DATASET`: answers a question with an engine that is installed.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use about_memory::Failure;
use clap::Args;
use serde_json::{Map, Value};

use super::dataset_arg::Dataset;
use crate::query::{Engine, EngineName, Filter, Format, QUESTIONS, Question, views};

/// `memreport-fleet query`
#[derive(Debug, Args)]
#[command(after_help = questions())]
pub(crate) struct QueryArgs {
    /// The question, `all` for all whose parameters are given, or a file `….sql` with a question of
    /// your own
    #[arg(value_name = "QUESTION", value_parser = question)]
    question: String,

    /// The folder of the dataset, or its address in a store: `s3://…`, `gs://…` or `az://…`
    #[arg(value_name = "DATASET")]
    dataset: OsString,

    /// The folder for copies of datasets in stores [default: `memreport-fleet` in
    /// `$XDG_CACHE_HOME` or `~/.cache`]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// The engine [default: the first that is installed of duckdb, clickhouse, spark]
    #[arg(long, value_name = "ENGINE")]
    engine: Option<EngineName>,

    /// The Python that may have the engine as a module
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: OsString,

    /// The form of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,

    /// Only this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// The earlier release, for `regression`
    #[arg(long, value_name = "VERSION")]
    before: Option<String>,

    /// The later release, for `regression`
    #[arg(long, value_name = "VERSION")]
    after: Option<String>,

    /// Only from this day on, in UTC: 2026-11-24
    #[arg(long, value_name = "DATE")]
    since: Option<String>,

    /// Only up to this day
    #[arg(long, value_name = "DATE")]
    until: Option<String>,

    /// Print the seconds that each question took to standard error
    #[arg(long)]
    timings: bool,

    /// Print the SQL instead of running it
    #[arg(long)]
    sql: bool,
}

/// Accepts the name of a question, or a file.
fn question(text: &str) -> Result<String, String> {
    let is_known = Question::of_name(text).is_some() || text == "all" || text.ends_with(".sql");
    let names: Vec<_> = QUESTIONS.iter().map(|question| question.name).collect();
    is_known
        .then(|| text.to_owned())
        .ok_or_else(|| format!("there are {}, all, and files that end in .sql", names.join(", ")))
}

fn questions() -> String {
    let line = |question: &Question| format!("  {:<14} {}?\n", question.name, question.title());
    format!("Questions:\n{}", QUESTIONS.iter().map(line).collect::<String>())
}

/// A question with the values of its parameters.
struct Chosen {
    name: String,
    title: &'static str,
    text: String,
}

impl QueryArgs {
    /// Prints the answer.
    ///
    /// # Errors
    /// No engine is installed, or it fails.
    pub(super) fn run(self, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), Failure> {
        let chosen = self.chosen()?;
        let engines = self.engine.map_or(EngineName::ALL.to_vec(), |engine| vec![engine]);
        let filter = Filter {
            service: self.service.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
        };
        if self.sql {
            for Chosen { text, .. } in &chosen {
                writeln!(out, "{text};")?;
            }
            return Ok(());
        }
        let engine = Engine::find(&engines, &self.python)?;
        let texts: Vec<String> = chosen.iter().map(|chosen| chosen.text.clone()).collect();
        let tables = views::tables_of(&texts);
        let cache = self.cache.as_deref();
        let dataset = Dataset::open(&self.dataset, cache, &tables, &filter, notes)?;
        let views = views::views(engine.name, dataset.folder(), &tables, &filter);
        let answers = engine.run(&views, &texts)?;
        if self.timings {
            for (Chosen { name, .. }, answer) in chosen.iter().zip(&answers) {
                if let Some(seconds) = answer.seconds {
                    writeln!(notes, "{name}: {seconds:.3} s")?;
                }
            }
        }
        match &answers[..] {
            [one] if self.question != "all" => one.write(self.format, out)?,
            all if self.format == Format::Json => {
                let names = chosen.iter().map(|chosen| chosen.name.clone());
                let all: Map<String, Value> =
                    names.zip(all.iter().map(|answer| answer.json())).collect();
                writeln!(out, "{}", Value::Object(all))?;
            }
            all => {
                for (Chosen { title, .. }, answer) in chosen.iter().zip(all) {
                    writeln!(out, "## {title}?\n")?;
                    answer.write(self.format, out)?;
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the questions to ask.
    fn chosen(&self) -> Result<Vec<Chosen>, Failure> {
        if self.question.ends_with(".sql") {
            let text = std::fs::read_to_string(&self.question)
                .map_err(|error| format!("{}: {error}", self.question))?;
            let text = text.trim_end().trim_end_matches(';').to_owned();
            return Ok(vec![Chosen { name: self.question.clone(), title: "", text }]);
        }
        let value = |name: &str| match name {
            "service" => self.service.clone(),
            "before" => self.before.clone(),
            "after" => self.after.clone(),
            _ => None,
        };
        let mut chosen = Vec::new();
        for question in &QUESTIONS {
            let name = question.name;
            if self.question != "all" && self.question != name {
                continue;
            }
            match question.text(value) {
                Ok(text) => {
                    let title = question.title();
                    chosen.push(Chosen { name: name.to_owned(), title, text });
                }
                Err(_) if self.question == "all" => {}
                Err(missing) => return Err(format!("`{name}` needs --{missing}").into()),
            }
        }
        Ok(chosen)
    }
}
