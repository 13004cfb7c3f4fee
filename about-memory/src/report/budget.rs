//! Compares reports with budgets: the largest amount of each path.
//!
//! ```toml
//! tolerance = "2%"                  # may be exceeded by this much; bytes or percent
//! heap-unclassified = "10%"         # short for "explicit/heap-unclassified"
//!
//! [ceilings]                        # of each process on its own
//! "explicit/index" = "64MB"         # bytes: with all that lies below
//! "explicit/*/strings" = "5%"       # `*` is any one segment; percent of the tree
//! "explicit/cache/**" = "1MB"       # `**` is any number of segments, none included
//! "page-faults-hard" = 100          # a plain number, for counts
//! ```

mod bless;

use super::numbers::size::parse_bytes;
use super::numbers::{self, Bytes, Unit};
use super::report_tree::ReportTree;
use super::report_tree::node::NodeId;
use std::error::Error;
use std::fmt;
use toml_edit::{DocumentMut, Item};

pub use bless::bless;

/// A budget, as in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    tolerance: Limit,
    /// The ceilings, in the order of the file.
    pub ceilings: Vec<Ceiling>,
}

/// The largest amount of each path that matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// The key in the file.
    pub pattern: String,
    /// Invariant: not empty.
    segments: Vec<String>,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Bytes, or a count.
    Amount(f64),
    /// A percentage of the tree; for a tolerance, of the ceiling.
    Percent(f64),
}

/// An error in a budget file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BudgetError {
    /// The file is not TOML.
    Toml(Box<toml_edit::TomlError>),
    /// A key is unknown.
    UnknownKey(String),
    /// A limit cannot be parsed.
    Limit {
        /// The key of the limit.
        key: String,
        /// The problem.
        what: String,
    },
    /// There is no ceiling: such a budget would always hold.
    Empty,
    /// A path of the report has more segments than the limit.
    TooDeep {
        /// The first segments of the path.
        start: String,
        /// The limit.
        limit: usize,
    },
}

/// The most segments of a path in a report that is checked: comparing takes the segments of each
/// path and of all paths above it.
const MOST_SEGMENTS: usize = 500;

/// The number of segments in the message for a path of too many.
const SEGMENTS_SHOWN: usize = 6;

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetError::Toml(_) => f.write_str("not TOML"),
            BudgetError::UnknownKey(key) => {
                write!(
                    f,
                    "unknown key `{key}`; `tolerance`, `heap-unclassified` and the table `ceilings` are known"
                )
            }
            BudgetError::Limit { key, what } => write!(f, "`{key}`: {what}"),
            BudgetError::Empty => f.write_str(
                "no ceilings; write `[ceilings]` and a line like \"explicit/index\" = \"64MB\"",
            ),
            BudgetError::TooDeep { start, limit } => {
                write!(
                    f,
                    "the path that begins with `{start}` has more than {limit} segments; give it fewer, or check a report without it"
                )
            }
        }
    }
}

impl Error for BudgetError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BudgetError::Toml(error) => Some(error),
            _ => None,
        }
    }
}

/// The amount of a path, with its ceiling.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The process.
    pub process: String,
    /// The path as in the file.
    pub path: String,
    /// The amount.
    pub amount: f64,
    /// The ceiling, without the tolerance.
    pub ceiling: f64,
    /// The unit of both.
    pub unit: Unit,
    /// The amount of the whole tree.
    total: f64,
    is_over: bool,
}

impl Finding {
    /// Formats an amount in its unit: `1.50 MB`.
    pub fn print(&self, amount: f64) -> String {
        numbers::amount(&amount.into(), self.unit, Bytes::Auto)
    }
}

/// The result of checking a report.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The paths above ceiling and tolerance, the largest excess first.
    pub over: Vec<Finding>,
    /// The number of paths compared with a ceiling.
    pub compared: usize,
    /// Ceilings that no path matches.
    pub unused: Vec<String>,
    /// The finding of each ceiling that needs the highest limit.
    highest: Vec<Option<Finding>>,
}

const SHORT_KEY: &str = "heap-unclassified";

impl Budget {
    /// Parses a budget.
    ///
    /// # Errors
    /// The text is no valid budget.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        let document: DocumentMut =
            text.parse().map_err(|error| BudgetError::Toml(Box::new(error)))?;
        let mut budget = Budget { tolerance: Limit::Amount(0.0), ceilings: Vec::new() };
        for (key, item) in document.iter() {
            match key {
                "tolerance" => budget.tolerance = limit(key, item)?,
                SHORT_KEY => budget.add("explicit/heap-unclassified", key, item)?,
                "ceilings" => {
                    let table = item
                        .as_table_like()
                        .ok_or_else(|| BudgetError::UnknownKey(key.to_owned()))?;
                    for (pattern, item) in table.iter() {
                        budget.add(pattern, pattern, item)?;
                    }
                }
                _ => return Err(BudgetError::UnknownKey(key.to_owned())),
            }
        }
        if budget.ceilings.is_empty() { Err(BudgetError::Empty) } else { Ok(budget) }
    }

    fn add(&mut self, pattern: &str, key: &str, item: &Item) -> Result<(), BudgetError> {
        let segments = pattern.split('/').map(str::to_owned).collect();
        self.ceilings.push(Ceiling { pattern: key.to_owned(), segments, limit: limit(key, item)? });
        Ok(())
    }

    /// Compares the totals of a report with the ceilings.
    ///
    /// # Errors
    /// A path has too many segments.
    pub fn check(&self, report_tree: &ReportTree) -> Result<Verdict, BudgetError> {
        if let Some(node) = report_tree.first_deeper_than(MOST_SEGMENTS) {
            let start = report_tree.segments(node)[..SEGMENTS_SHOWN].join("/");
            let start = start.chars().take(200).collect();
            return Err(BudgetError::TooDeep { start, limit: MOST_SEGMENTS });
        }
        let mut verdict =
            Verdict { highest: vec![None; self.ceilings.len()], ..Verdict::default() };
        for node in report_tree.ids() {
            let path = report_tree.segments(node);
            for (index, ceiling) in self
                .ceilings
                .iter()
                .enumerate()
                .filter(|(_, ceiling)| matches(&ceiling.segments, &path))
            {
                let finding = self.finding(report_tree, node, &path, ceiling);
                verdict.compared += 1;
                let highest = &mut verdict.highest[index];
                if highest
                    .as_ref()
                    .is_none_or(|highest| ceiling.least(&finding) > ceiling.least(highest))
                {
                    *highest = Some(finding.clone());
                }
                if finding.is_over {
                    verdict.over.push(finding);
                }
            }
        }
        verdict
            .over
            .sort_by(|a, b| excess(b).total_cmp(&excess(a)).then_with(|| a.path.cmp(&b.path)));
        let unmatched =
            self.ceilings.iter().zip(&verdict.highest).filter(|(_, highest)| highest.is_none());
        verdict.unused = unmatched.map(|(ceiling, _)| ceiling.pattern.clone()).collect();
        Ok(verdict)
    }

    fn finding(
        &self,
        report_tree: &ReportTree,
        node: NodeId,
        path: &[&str],
        ceiling: &Ceiling,
    ) -> Finding {
        let (root, process) = report_tree.root_and_process(node);
        let (amount, total) =
            (report_tree.node(node).amount.number(), report_tree.node(root).amount.number());
        let allowed = match ceiling.limit {
            Limit::Amount(amount) => amount,
            Limit::Percent(percent) => total * percent / 100.0,
        };
        let tolerance = match self.tolerance {
            Limit::Amount(amount) => amount,
            Limit::Percent(percent) => allowed * percent / 100.0,
        };
        Finding {
            process: process.to_owned(),
            path: path.join("/"),
            amount,
            ceiling: allowed,
            unit: report_tree.node(root).unit,
            total,
            // NaN is not within any budget.
            is_over: amount > allowed + tolerance || amount.is_nan(),
        }
    }
}

impl Ceiling {
    /// Returns the lowest limit that a finding is within: an amount, or a percentage of its tree.
    fn least(&self, finding: &Finding) -> f64 {
        match self.limit {
            Limit::Amount(_) => finding.amount,
            Limit::Percent(_) => 100.0 * finding.amount / finding.total,
        }
    }
}

fn excess(finding: &Finding) -> f64 {
    finding.amount - finding.ceiling
}

/// Returns whether a path matches a pattern.
fn matches(pattern: &[String], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((first, rest)) if first == "**" => {
            (0..=path.len()).any(|skipped| matches(rest, &path[skipped..]))
        }
        Some((first, rest)) => path.split_first().is_some_and(|(segment, below)| {
            (first == "*" || first == segment) && matches(rest, below)
        }),
    }
}

fn limit(key: &str, item: &Item) -> Result<Limit, BudgetError> {
    let fail = |what: String| BudgetError::Limit { key: key.to_owned(), what };
    let number = item
        .as_float()
        .or_else(|| item.as_integer().and_then(|number| number.to_string().parse().ok()));
    if let Some(number) = number {
        return Ok(Limit::Amount(number));
    }
    let text = item.as_str().ok_or_else(|| fail("write a number, \"64MB\" or \"5%\"".into()))?;
    match text.strip_suffix('%') {
        Some(percent) => match percent.trim().parse::<f64>() {
            Ok(percent) if percent >= 0.0 => Ok(Limit::Percent(percent)),
            _ => Err(fail(format!("`{text}` is no share; write it as \"5%\""))),
        },
        None => parse_bytes(text).map(Limit::Amount).map_err(fail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        let pattern: Vec<String> = pattern.split('/').map(str::to_owned).collect();
        matches(&pattern, &path.split('/').collect::<Vec<_>>())
    }

    #[test]
    fn stars_stand_for_segments() {
        for (pattern, path, expected) in [
            ("explicit/a", "explicit/a", true),
            ("explicit/a", "explicit/a/b", false),
            ("explicit/*", "explicit/a", true),
            ("explicit/*", "explicit", false),
            ("explicit/*", "explicit/a/b", false),
            ("explicit/*/b", "explicit/a/b", true),
            ("explicit/**", "explicit", true),
            ("explicit/**", "explicit/a/b", true),
            ("**/b", "explicit/a/b", true),
            ("**/b/**/d", "a/b/c/c/d", true),
            ("**/b/**/d", "a/c/d", false),
            ("a*", "ab", false),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_budget_is_said() {
        for (text, message) in [
            ("", "no ceilings; write `[ceilings]` and a line like \"explicit/index\" = \"64MB\""),
            (
                "[ceilings]\n\"a\" = \"5 apples\"",
                "`a`: unknown unit `apples`; B, KB, MB and GB are known",
            ),
            ("[ceilings]\n\"a\" = true", "`a`: write a number, \"64MB\" or \"5%\""),
            ("[ceilings]\n\"a\" = \"-5%\"", "`a`: `-5%` is no share; write it as \"5%\""),
            (
                "ceiling = 5",
                "unknown key `ceiling`; `tolerance`, `heap-unclassified` and the table `ceilings` are known",
            ),
            ("[ceilings", "not TOML"),
        ] {
            assert_eq!(Budget::parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }
}
