//! Sets the ceilings of a budget to what a report has, and keeps the rest of the file as it is.

use super::{Budget, BudgetError, Limit, SHORT_KEY, Verdict};
use toml_edit::{DocumentMut, Item, Value};

/// Returns the text of a budget with every ceiling set to the value in the report, in the same
/// unit.
///
/// Ceilings that no path matches stay.
///
/// # Errors
/// The text is no valid budget.
pub fn bless(text: &str, budget: &Budget, verdict: &Verdict) -> Result<String, BudgetError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error| BudgetError::Toml(Box::new(error)))?;
    for (ceiling, highest) in budget.ceilings.iter().zip(&verdict.highest) {
        let Some(highest) = highest else { continue };
        let item = match &*ceiling.pattern {
            SHORT_KEY => document.get_mut(SHORT_KEY),
            pattern => document.get_mut("ceilings").and_then(|table| table.get_mut(pattern)),
        };
        let Some(Item::Value(old)) = item else { continue };
        let new = match ceiling.limit {
            Limit::Percent(_) => {
                Value::from(format!("{:.2}%", up_to_hundredths(ceiling.least(highest))))
            }
            Limit::Amount(_) => match old.as_str() {
                Some(written) => Value::from(in_the_unit_of(written, highest.amount)),
                None => whole(highest.amount),
            },
        };
        // Keep white space and comments around the value.
        let decor = old.decor().clone();
        *old = new;
        *old.decor_mut() = decor;
    }
    Ok(document.to_string())
}

/// Rounds up, so that the report is within the ceiling.
fn up_to_hundredths(number: f64) -> f64 {
    (number.max(0.0) * 100.0).ceil() / 100.0
}

fn whole(amount: f64) -> Value {
    let up = amount.max(0.0).ceil();
    format!("{up:.0}").parse::<i64>().map_or_else(|_| Value::from(up), Value::from)
}

fn in_the_unit_of(written: &str, amount: f64) -> String {
    let unit = written.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = match unit.trim().chars().next().map(|c| c.to_ascii_lowercase()) {
        Some('k') => 1024.0,
        Some('m') => 1_048_576.0,
        Some('g') => 1_073_741_824.0,
        _ => return format!("{:.0}{unit}", amount.max(0.0).ceil()),
    };
    format!("{:.2}{unit}", up_to_hundredths(amount / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_keep_their_unit_and_round_up() {
        for (written, amount, blessed) in [
            ("64MB", 1_048_576.0 * 1.5, "1.50MB"),
            ("64 MiB", 1_048_577.0, "1.01 MiB"),
            ("1K", 100.0, "0.10K"),
            ("5", 7.0, "7"),
            ("5 B", 7.2, "8 B"),
            ("5 B", -7.0, "0 B"),
        ] {
            assert_eq!(in_the_unit_of(written, amount), blessed);
        }
    }
}
