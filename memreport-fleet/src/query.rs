//! Questions about a dataset, and the engines that answer them.
//!
//! A question is a file of `sql/`, in the dialect that DuckDB, ClickHouse and Spark share. It reads
//! views of the tables, which [`views`] defines for each engine. Sums are of whole numbers, and
//! every other figure is rounded by the question itself, so all engines give equal answers.

pub mod answer;
pub mod engine;
pub mod local_copy;
pub mod views;

pub use answer::{Answer, Format};
pub use engine::{Engine, EngineName};
pub use local_copy::LocalCopy;
pub use views::Filter;

/// A question about a dataset.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its file.
    sql: &'static str,
    /// The parameters that must be given: `:before` is `before`.
    pub parameters: &'static [&'static str],
}

/// Defines a question by its file.
macro_rules! question {
    ($name:literal, $($parameter:literal),*) => {
        Question {
            name: $name,
            sql: include_str!(concat!("../sql/", $name, ".sql")),
            parameters: &[$($parameter),*],
        }
    };
}

/// All questions.
pub const QUESTIONS: [Question; 8] = [
    question!("growth",),
    question!("outliers",),
    question!("leaks",),
    question!("unreported",),
    question!("waste",),
    question!("fragmentation",),
    question!("regression", "service", "before", "after"),
    question!("scopes",),
];

impl Question {
    /// Returns the question of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<&'static Question> {
        static ALL: [Question; 8] = QUESTIONS;
        ALL.iter().find(|question| question.name == name)
    }

    /// Returns the first sentence of its file: what it asks.
    #[must_use]
    pub fn title(&self) -> &'static str {
        let line = self.sql.lines().next().unwrap_or_default().trim_start_matches("-- ");
        line.split_once('?').map_or(line, |(title, _)| title)
    }

    /// Returns its text, with the values of its parameters.
    ///
    /// # Errors
    ///
    /// Returns the name of a parameter that has no value.
    pub fn text(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, &'static str> {
        let mut text = self.sql.trim_end().trim_end_matches(';').to_owned();
        for parameter in self.parameters {
            let value = value(parameter).ok_or(*parameter)?;
            text = text.replace(&format!(":{parameter}"), &literal(&value));
        }
        Ok(text)
    }
}

/// Returns a text as a literal of SQL that all engines read the same.
///
/// # Panics
///
/// Never: characters that engines read differently are left out.
#[must_use]
pub fn literal(text: &str) -> String {
    // Backslashes escape in ClickHouse and Spark, but not in DuckDB.
    let plain: String = text.chars().filter(|c| *c != '\\' && !c.is_control()).collect();
    // Two quotes are one in DuckDB and ClickHouse. Spark joins two adjacent literals.
    format!("'{}'", plain.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_a_title_and_its_parameters() {
        for question in &QUESTIONS {
            assert!(question.title().len() > 10, "{}", question.name);
            let text = question.text(|name| Some(format!("<{name}>"))).expect("all are given");
            assert!(!text.contains(" :"), "{}: a parameter is left", question.name);
            assert_eq!(question.parameters.is_empty(), question.text(|_| None).is_ok());
        }
        assert_eq!(Question::of_name("growth").map(Question::title), Some("Which release grew"));
    }

    #[test]
    fn a_value_stays_within_its_literal() {
        assert_eq!(literal("a'; DROP TABLE x --\\"), "'a''; DROP TABLE x --'");
    }
}
