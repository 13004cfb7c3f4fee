//! The result of one rule.

use std::fmt;

/// The result of one rule over the whole workspace.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// False if the rule is violated.
    pub(crate) holds: bool,
    /// Printed behind the verdict: counts, or the reason that the rule did not run.
    pub(crate) summary: String,
    /// Printed below the verdict, whether the rule holds or not.
    pub(crate) drawing: String,
    /// One line for each violation, beginning with the file and the line.
    pub(crate) offenders: Vec<String>,
}

impl Outcome {
    /// Returns the outcome of a rule that allows no offenders.
    pub(crate) fn none_of(offenders: Vec<String>) -> Self {
        Outcome { holds: offenders.is_empty(), offenders, ..Outcome::default() }
    }

    /// Adds a summary.
    pub(crate) fn with_summary(self, summary: String) -> Self {
        Outcome { summary, ..self }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.holds { "ok" } else { "FAILED" })?;
        if !self.summary.is_empty() {
            write!(out, " ({})", self.summary)?;
        }
        for line in self.drawing.lines().chain(self.offenders.iter().map(String::as_str)) {
            write!(out, "\n  {line}")?;
        }
        Ok(())
    }
}
