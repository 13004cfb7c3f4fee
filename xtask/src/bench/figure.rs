//! Figures with their targets, printed as a table for people and as lines of JSON for programs.

use std::fmt;
use std::io::{self, Write};

/// A measured number with its target.
pub(crate) struct Figure {
    /// The name of the figure.
    pub(crate) name: String,
    /// The measurement, or the reason that it did not run.
    pub(crate) outcome: Outcome,
    /// The largest allowed value; without one, the figure is only printed.
    pub(crate) target: Option<f64>,
    /// The unit of the value and the target.
    pub(crate) unit: &'static str,
}

/// The outcome of a measurement.
pub(crate) enum Outcome {
    Measured {
        median: f64,
        /// The 95 % confidence interval of the median.
        interval: (f64, f64),
    },
    /// The reason that it did not run.
    NotRun(String),
}

/// A measurement compared with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The median is within the target.
    Met,
    /// The median is above the target, and noise may be the cause: its interval is not.
    NotShown,
    /// The whole interval is above the target.
    Missed,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotShown => "not shown",
            Self::Missed => "missed",
        }
    }
}

impl Figure {
    /// Returns a figure of several measurements.
    pub(crate) fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        let (median, interval) = median(values);
        let outcome = Outcome::Measured { median, interval };
        Figure { name: name.into(), outcome, target: None, unit: "x" }
    }

    pub(crate) fn not_run(name: impl Into<String>, why: impl Into<String>) -> Self {
        let outcome = Outcome::NotRun(why.into());
        Figure { name: name.into(), outcome, target: None, unit: "x" }
    }

    /// Sets the target and the unit.
    pub(crate) fn at_most(self, target: impl Into<Option<f64>>, unit: &'static str) -> Self {
        Figure { target: target.into(), unit, ..self }
    }

    /// Returns how the measurement compares with the target; `None` if one of them is missing.
    fn verdict(&self) -> Option<Verdict> {
        let Outcome::Measured { median, interval } = self.outcome else { return None };
        let target = self.target?;
        Some(match () {
            () if median <= target => Verdict::Met,
            () if interval.0 <= target => Verdict::NotShown,
            () => Verdict::Missed,
        })
    }

    fn json(&self) -> serde_json::Value {
        let mut line = serde_json::json!({ "figure": self.name, "unit": self.unit });
        match &self.outcome {
            Outcome::Measured { median, interval } => {
                line["median"] = (*median).into();
                line["low"] = interval.0.into();
                line["high"] = interval.1.into();
            }
            Outcome::NotRun(why) => line["not run"] = why.as_str().into(),
        }
        if let Some(target) = self.target {
            line["target"] = target.into();
            line["verdict"] = self.verdict().map(Verdict::name).into();
        }
        line
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { name, outcome, target, unit } = self;
        match outcome {
            Outcome::NotRun(why) => write!(out, "{name:NAME_WIDTH$}  not run: {}", cut(why)),
            Outcome::Measured { median, interval: (low, high) } => {
                write!(out, "{name:NAME_WIDTH$}  {median:>7.3}  {low:>7.3}–{high:<7.3}")?;
                match target {
                    Some(target) => write!(out, "  {target:>6.2} {unit:<2}")?,
                    None => write!(out, "  {:>6} {unit:<2}", "")?,
                }
                out.write_str(match self.verdict() {
                    Some(Verdict::Missed) => "  MISSED",
                    Some(Verdict::NotShown) => "  not shown: in the interval",
                    Some(Verdict::Met) | None => "",
                })
            }
        }
    }
}

const NAME_WIDTH: usize = 34;

/// Truncates a reason to the width of a table. The JSON lines have all of it.
fn cut(why: &str) -> String {
    const ROOM: usize = 36;
    match why.char_indices().nth(ROOM) {
        None => why.to_owned(),
        Some((end, _)) => format!("{}…", why.get(..end).unwrap_or(why)),
    }
}

/// Returns the median and its 95 % interval by order statistics, which assume no distribution.
pub(crate) fn median(mut values: Vec<f64>) -> (f64, (f64, f64)) {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let half = count / 2;
    let middle =
        if count % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) };
    // Half the width is 0.98 √n ranks; a few values give the whole range.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    let reach = (0.98 * (count as f64).sqrt()).ceil() as usize;
    let low = half.saturating_sub(reach);
    let high = (half + reach).min(count - 1);
    (middle, (values[low], values[high]))
}

/// Prints the figures as a table.
pub(crate) fn table(title: &str, figures: &[Figure], out: &mut dyn Write) -> io::Result<()> {
    let title = format!("{title:NAME_WIDTH$}");
    writeln!(out, "{title}  {:>7}  {:^15}  {:>6}", "median", "95 % interval", "target")?;
    for figure in figures {
        writeln!(out, "{}", figure.to_string().trim_end())?;
    }
    writeln!(out)
}

/// Prints the figures as lines of JSON. Returns `false` when a target is missed.
pub(crate) fn lines(figures: &[Figure], out: &mut dyn Write) -> io::Result<bool> {
    for figure in figures {
        writeln!(out, "{}", figure.json())?;
    }
    Ok(figures.iter().all(|figure| figure.verdict() != Some(Verdict::Missed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_its_interval() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), (2.0, (1.0, 3.0)));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), (2.5, (1.0, 4.0)));
        let (middle, (low, high)) = median((0..31).map(f64::from).collect());
        assert_eq!((middle, low, high), (15.0, 9.0, 21.0));
    }

    #[test]
    fn a_target_is_missed_only_beyond_the_noise() {
        let figure = |values: [f64; 3]| Figure::new("", values.into()).at_most(1.05, "x");
        assert_eq!(figure([1.0, 1.05, 1.2]).verdict(), Some(Verdict::Met));
        assert_eq!(figure([1.04, 1.1, 1.2]).verdict(), Some(Verdict::NotShown));
        assert_eq!(figure([1.06, 1.1, 1.2]).verdict(), Some(Verdict::Missed));
        assert_eq!(Figure::new("", vec![9.0]).verdict(), None);
    }

    #[test]
    fn what_did_not_run_says_so_and_is_neither_met_nor_missed() {
        let figure = Figure::not_run("a peer", "it is not installed").at_most(1.05, "x");
        assert!(figure.to_string().ends_with("  not run: it is not installed"));
        assert_eq!(
            figure.json().to_string(),
            r#"{"figure":"a peer","not run":"it is not installed","target":1.05,"unit":"x","verdict":null}"#
        );
    }
}
