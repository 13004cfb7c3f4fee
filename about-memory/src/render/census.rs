//! Writes a census as a tree, a table, CSV or JSON.

mod leaves;
pub(crate) mod csv;
pub(crate) mod table;
pub(crate) mod tree;

use memreport_analysis::census::Census;

/// What a census is of, and how much of it is shown.
#[derive(Debug)]
pub(crate) struct Shown<'c> {
    pub(crate) census: &'c Census,
    /// Whose heap it is.
    pub(crate) of: String,
    pub(crate) top: usize,
    /// Columns of a line; as many as there are if nobody says.
    pub(crate) columns: usize,
}

impl Shown<'_> {
    /// What all of it is, in a sentence.
    fn head(&self) -> String {
        let Shown { census, of, .. } = self;
        let amount = census.root().amount;
        let [bytes, count] = [amount.bytes, amount.count].map(|number| self.number(number));
        let blocks = if amount.count.abs() == 1 { "block" } else { "blocks" };
        let sample = if census.is_sampled() { "about " } else { "" };
        let growth = if census.is_difference() { " since the first" } else { "" };
        format!("{of}: {sample}{bytes} bytes in {count} {blocks}{growth}")
    }

    /// With a sign, if it is of a difference.
    fn number(&self, number: i64) -> String {
        let plus = if self.census.is_difference() && number > 0 { "+" } else { "" };
        format!("{plus}{}", memreport_analysis::analysis::commas(number.into()))
    }

    /// A share of the whole; a difference has none.
    fn share(&self, bytes: i64) -> Option<String> {
        let all = self.census.root().amount.bytes;
        let share =
            || format!("{:.2}%", memreport_analysis::analysis::percent(bytes.into(), all.into()));
        (!self.census.is_difference()).then(share)
    }
}
