//! Finds an engine that is installed, and runs questions with it.
//!
//! DuckDB and ClickHouse run as their command lines, or as modules of Python; Spark as a module of
//! Python.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;

use serde_json::{Value, json};

use super::answer::Answer;
use super::views::View;

/// The program that runs questions with a module of Python.
const DRIVER: &str = include_str!("engine/driver.py");

/// The settings by which ClickHouse follows the standard.
const CLICKHOUSE: [&str; 5] = [
    "join_use_nulls=1",
    "cast_keep_nullable=1",
    "use_hive_partitioning=1",
    "output_format_json_quote_64bit_integers=0",
    "input_format_parquet_allow_missing_columns=1",
];

/// An engine that questions run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineName {
    /// DuckDB.
    DuckDb,
    /// ClickHouse, or its embedded form chDB.
    ClickHouse,
    /// Spark.
    Spark,
}

impl EngineName {
    /// All engines, the one to prefer first.
    pub const ALL: [EngineName; 3] =
        [EngineName::DuckDb, EngineName::ClickHouse, EngineName::Spark];

    /// Returns its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineName::DuckDb => "duckdb",
            EngineName::ClickHouse => "clickhouse",
            EngineName::Spark => "spark",
        }
    }

    /// Returns how to install it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            EngineName::DuckDb => "the program `duckdb`, or pip install duckdb",
            EngineName::ClickHouse => "the program `clickhouse`, or pip install chdb",
            EngineName::Spark => "pip install pyspark, and Java 17",
        }
    }

    /// Returns the module of Python that has it.
    fn module(self) -> &'static str {
        match self {
            EngineName::DuckDb => "duckdb",
            EngineName::ClickHouse => "chdb",
            EngineName::Spark => "pyspark",
        }
    }
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = EngineName::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| {
            format!("no engine is called `{name}`; there are duckdb, clickhouse, spark")
        })
    }
}

/// An engine that is installed.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Which engine.
    pub name: EngineName,
    how: How,
}

/// The way to run an engine.
#[derive(Debug, Clone)]
enum How {
    /// Its own command line.
    Program(PathBuf),
    /// A module of this Python.
    Python(PathBuf),
}

/// The reason why a question has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineError {
    /// None of these engines is installed.
    Missing(Vec<EngineName>),
    /// The engine could not be started, or was cut off.
    Io(EngineName, io::Error),
    /// The engine refused, with this message.
    Refused(EngineName, String),
    /// The engine's output is no answer.
    Garbled(EngineName, String),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Missing(names) => {
                let remedies: Vec<_> = names.iter().map(|name| name.remedy()).collect();
                write!(
                    f,
                    "no engine is installed; install one: {}; --python names the Python that has it",
                    remedies.join("; ")
                )
            }
            EngineError::Io(name, error) => write!(f, "{} does not run: {error}", name.name()),
            EngineError::Refused(name, message) => {
                write!(f, "{} failed: {}", name.name(), message.trim())
            }
            EngineError::Garbled(name, message) => {
                write!(f, "{} gave no answer: {message}", name.name())
            }
        }
    }
}

impl std::error::Error for EngineError {}

impl Engine {
    /// Finds the first of these engines that is installed. `python` is the Python that may have
    /// their modules.
    ///
    /// # Errors
    ///
    /// None is installed.
    pub fn find(names: &[EngineName], python: &OsStr) -> Result<Self, EngineError> {
        let of_program = |name: &EngineName| {
            let program = on_path(name.name()).filter(|_| *name != EngineName::Spark)?;
            Some(Engine { name: *name, how: How::Program(program) })
        };
        let of_python = |name: &EngineName| {
            let check = format!(
                "import importlib.util as u, sys; sys.exit(u.find_spec('{}') is None)",
                name.module()
            );
            let mut command = Command::new(python);
            command.args(["-c", &check]).stdout(Stdio::null()).stderr(Stdio::null());
            let is_there = command.status().is_ok_and(|status| status.success());
            is_there.then(|| Engine { name: *name, how: How::Python(python.into()) })
        };
        let found = names.iter().find_map(|name| of_program(name).or_else(|| of_python(name)));
        found.ok_or_else(|| EngineError::Missing(names.to_vec()))
    }

    /// Runs questions over these views. Returns an answer for each.
    ///
    /// # Errors
    ///
    /// The engine fails.
    pub fn run(&self, views: &[View], questions: &[String]) -> Result<Vec<Answer>, EngineError> {
        match &self.how {
            How::Program(program) => {
                let of_one = |question: &String| self.run_program(program, views, question);
                questions.iter().map(of_one).collect()
            }
            How::Python(python) => self.run_python(python, views, questions),
        }
    }

    fn run_program(
        &self,
        program: &PathBuf,
        views: &[View],
        question: &str,
    ) -> Result<Answer, EngineError> {
        let mut script = String::new();
        for view in views {
            script += &view.statement(self.name);
            script += ";\n";
        }
        let mut command = Command::new(program);
        if self.name == EngineName::DuckDb {
            command.args(["-json", "-bail"]);
            script += question;
        } else {
            command.arg("local");
            command.args(CLICKHOUSE.map(|setting| format!("--{setting}")));
            script += &format!("{question}\nFORMAT JSONEachRow");
        }
        script += ";\n";
        let text = self.output(command, script.as_bytes())?;
        Answer::parse(&text).map_err(|error| EngineError::Garbled(self.name, error))
    }

    fn run_python(
        &self,
        python: &PathBuf,
        views: &[View],
        questions: &[String],
    ) -> Result<Vec<Answer>, EngineError> {
        let view = |view: &View| {
            json!({
                "name": view.name, "folder": view.folder, "columns": view.columns,
                "condition": view.condition, "statement": view.statement(self.name),
            })
        };
        let request = json!({
            "engine": self.name.name(),
            "settings": CLICKHOUSE,
            "views": views.iter().map(view).collect::<Vec<_>>(),
            "questions": questions,
        });
        let mut command = Command::new(python);
        command.args(["-c", DRIVER]);
        let text = self.output(command, request.to_string().as_bytes())?;
        let garbled = |error: String| EngineError::Garbled(self.name, error);
        // Engines may print notes before.
        let last = text.lines().last().unwrap_or_default();
        let answers: Vec<Value> =
            serde_json::from_str(last).map_err(|error| garbled(error.to_string()))?;
        let answers: Result<_, _> = answers.iter().map(Answer::of_json).collect();
        answers.map_err(garbled)
    }

    /// Returns what the engine prints for this input.
    fn output(&self, mut command: Command, input: &[u8]) -> Result<String, EngineError> {
        let io = |error| EngineError::Io(self.name, error);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(io)?;
        if let Some(mut stdin) = child.stdin.take() {
            match stdin.write_all(input) {
                // It has failed, and says why.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written.map_err(io)?,
            }
        }
        let output = child.wait_with_output().map_err(io)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let answer = text(&output.stdout);
        if !output.status.success() {
            let reason = stated_reason(&answer).unwrap_or_else(|| text(&output.stderr));
            return Err(EngineError::Refused(self.name, reason));
        }
        Ok(answer)
    }
}

/// Returns the reason for which the module of Python failed, in the last line that it printed.
/// Standard error has where the error came from, too, and the engine's log.
fn stated_reason(output: &str) -> Option<String> {
    let last: Value = serde_json::from_str(output.lines().last()?).ok()?;
    Some(last["error"].as_str()?.to_owned())
}

/// Returns a program of this name on the path.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_module_states_the_reason() {
        let text = "a note of the engine\n{\"error\": \"no magic bytes in x.parquet\"}\n";
        assert_eq!(stated_reason(text).as_deref(), Some("no magic bytes in x.parquet"));
        for text in ["", "[]\n", "{\"rows\": 1}\n", "no JSON\n"] {
            assert_eq!(stated_reason(text), None, "{text}");
        }
    }
}
