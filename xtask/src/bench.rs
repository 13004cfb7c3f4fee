//! Benchmarks: figures with their targets, as a table and as JSON.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::{Failure, bench_analyse, bench_measure, bench_overhead, bench_show};

/// Runs a benchmark by name. `false` when a target is missed.
pub(crate) fn run(name: &str, args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let is_quick = args.contains(&"--quick");
    match name {
        "overhead" => bench_overhead::run(is_quick, out),
        "measure" => bench_measure::run(is_quick, out),
        "show" => {
            let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
            Ok(bench_show::run(&args, out)? == ExitCode::SUCCESS)
        }
        "analyse" => {
            let script = args.iter().find(|word| !word.starts_with("--"));
            Ok(bench_analyse::run(script.map(Path::new), out)?)
        }
        _ => Err(format!(
            "no benchmark is called {name}; there are: overhead, show, analyse, measure"
        )
        .into()),
    }
}

/// A measured number and what it is held to.
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) name: String,
    /// The median.
    pub(crate) value: f64,
    /// Where the true median lies with 95 % certainty.
    pub(crate) interval: (f64, f64),
    /// At most this.
    pub(crate) target: f64,
    /// In what.
    pub(crate) unit: &'static str,
}

impl Figure {
    /// The target is missed only if noise cannot explain it.
    pub(crate) fn is_met(&self) -> bool {
        self.interval.0 <= self.target
    }
}

/// The median of what was measured, and its 95 % interval by order statistics: no shape is assumed.
pub(crate) fn median(mut values: Vec<f64>) -> (f64, (f64, f64)) {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let half = count / 2;
    let middle =
        if count % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) };
    // Half the width is 0.98 √n ranks; of few values, all of them.
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

/// Prints the figures; `false` when a target is missed.
pub(crate) fn report(title: &str, figures: &[Figure], out: &mut dyn Write) -> io::Result<bool> {
    writeln!(out, "{title}\n")?;
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
    writeln!(out, "{:width$}  {:>8}  {:>17}  {:>8}", "", "median", "95 % interval", "target")?;
    for figure in figures {
        let Figure { name, value, interval: (low, high), target, unit } = figure;
        let verdict = if figure.is_met() { "" } else { "  MISSED" };
        writeln!(
            out,
            "{name:width$}  {value:>8.3}  {low:>8.3}–{high:<8.3}  {target:>8.2} {unit}{verdict}"
        )?;
    }
    writeln!(out)?;
    for figure in figures {
        let line = serde_json::json!({
            "figure": figure.name,
            "median": figure.value,
            "low": figure.interval.0,
            "high": figure.interval.1,
            "target": figure.target,
            "unit": figure.unit,
            "met": figure.is_met(),
        });
        writeln!(out, "{line}")?;
    }
    Ok(figures.iter().all(Figure::is_met))
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
        let figure =
            |interval| Figure { name: String::new(), value: 1.1, interval, target: 1.05, unit: "" };
        assert!(figure((1.04, 1.2)).is_met());
        assert!(!figure((1.06, 1.2)).is_met());
    }
}
