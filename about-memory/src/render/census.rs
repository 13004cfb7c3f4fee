//! Writes a census as a tree, a table, CSV or JSON.

mod leaves;
pub(crate) mod csv;
pub(crate) mod table;
pub(crate) mod tree;

use memreport_analysis::census::Census;

/// A census to print.
#[derive(Debug)]
pub(crate) struct Shown<'c> {
    pub(crate) census: &'c Census,
    /// The program's name.
    pub(crate) of: String,
    pub(crate) top: usize,
    /// The columns of a line; unlimited without a terminal.
    pub(crate) columns: usize,
}

impl Shown<'_> {
    /// Returns the heading: a sentence with the totals.
    fn head(&self) -> String {
        let Shown { census, of, .. } = self;
        let amount = census.root().amount;
        let [bytes, count] = [amount.bytes, amount.count].map(|number| self.number(number));
        let blocks = if amount.count.abs() == 1 { "block" } else { "blocks" };
        let sample = if census.is_sampled() { "about " } else { "" };
        let growth = if census.is_difference() { " since the first" } else { "" };
        format!("{of}: {sample}{bytes} bytes in {count} {blocks}{growth}")
    }

    /// Formats a number, with a sign if the census is a difference.
    fn number(&self, number: i64) -> String {
        let plus = if self.census.is_difference() && number > 0 { "+" } else { "" };
        format!("{plus}{}", memreport_analysis::analysis::commas(number.into()))
    }

    /// Returns the share of the whole; `None` in a difference.
    fn share(&self, bytes: i64) -> Option<String> {
        let all = self.census.root().amount.bytes;
        let share =
            || format!("{:.2}%", memreport_analysis::analysis::percent(bytes.into(), all.into()));
        (!self.census.is_difference()).then(share)
    }
}
