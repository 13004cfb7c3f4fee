//! Breakdowns in words, as the command line takes them: `reporter:2,type,stack:3`.

use super::{Breakdown, Split};
use crate::axis::{Axis, AxisError, GroupBy};

impl Breakdown {
    /// Reads a breakdown from the words for its axes.
    ///
    /// # Errors
    ///
    /// Returns an error for unknown words, words that occur twice, and numbers where nothing can be
    /// cut.
    ///
    /// # Examples
    ///
    /// ```
    /// use memreport_analysis::census::Breakdown;
    ///
    /// let breakdown = Breakdown::of_words("type,stack:3")?;
    /// let stack = r#"{"by":"allocationStack","depth":3}"#;
    /// let json = format!(r#"{{"by":"type","other":{stack},"then":{stack}}}"#);
    /// assert_eq!(breakdown.to_json(), json);
    /// # Ok::<(), memreport_analysis::census::AxisError>(())
    /// ```
    pub fn of_words(words: &str) -> Result<Self, AxisError> {
        words.parse().map(|group_by: GroupBy| group_by.into())
    }
}

impl From<GroupBy> for Breakdown {
    /// Splits blocks by each axis within the one before. Blocks without a key are split by the next
    /// axis all the same.
    ///
    /// A census has classes for sizes: single ones would be groups without number.
    fn from(group_by: GroupBy) -> Self {
        group_by.axes().iter().rev().fold(Breakdown::default(), |inner, axis| {
            let axis = if *axis == Axis::Size { Axis::SizeClass } else { axis.clone() };
            Split::by(axis).otherwise(inner.clone()).then(inner).into()
        })
    }
}
