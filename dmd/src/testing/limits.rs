//! The limits of a check of classified memory.

use crate::collect::Summary;

/// Limits for the unreported bytes of a check. Each limit that is set must hold.
///
/// ```
/// use dmd::testing::Limits;
///
/// let at_most = Limits::bytes(4096).and_percent(5.0);
/// assert_eq!(Limits::from(5.0), Limits::percent(5.0));
/// # let _ = at_most;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    bytes: Option<usize>,
    percent: Option<f64>,
}

impl Limits {
    /// Allows so many unreported bytes.
    #[must_use]
    pub const fn bytes(bytes: usize) -> Self {
        Limits { bytes: Some(bytes), percent: None }
    }

    /// Allows this share of the checked bytes to be unreported.
    #[must_use]
    pub const fn percent(percent: f64) -> Self {
        Limits { bytes: None, percent: Some(percent) }
    }

    /// Also limits the share.
    #[must_use]
    pub const fn and_percent(mut self, percent: f64) -> Self {
        self.percent = Some(percent);
        self
    }

    /// Also limits the bytes.
    #[must_use]
    pub const fn and_bytes(mut self, bytes: usize) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Returns the limits that these bytes exceed, as text.
    pub(super) fn exceeded(self, unreported: i64, summary: &Summary) -> Option<String> {
        let too_many = self
            .bytes
            .filter(|limit| unreported > i64::try_from(*limit).unwrap_or(i64::MAX))
            .map(|limit| format!("{limit} bytes"));
        let share = percent_of(unreported, summary.heap_allocated);
        let too_large =
            self.percent.filter(|limit| share > *limit).map(|limit| format!("{limit} %"));
        let limits: Vec<_> = too_many.into_iter().chain(too_large).collect();
        (!limits.is_empty()).then(|| limits.join(" and "))
    }
}

impl From<f64> for Limits {
    /// Limits the share in percent.
    fn from(percent: f64) -> Self {
        Limits::percent(percent)
    }
}

/// Returns the share of a part in percent.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(super) fn percent_of(bytes: i64, all: usize) -> f64 {
    if all == 0 { 0.0 } else { bytes as f64 * 100.0 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_exceeded_by_more_than_itself() {
        let summary = Summary { heap_allocated: 1000, ..Summary::default() };
        let exceeded = |limits: Limits, unreported| limits.exceeded(unreported, &summary);
        assert_eq!(exceeded(Limits::bytes(100), 100), None);
        assert_eq!(exceeded(Limits::bytes(100), 101).as_deref(), Some("100 bytes"));
        assert_eq!(exceeded(Limits::percent(10.0), 100), None);
        assert_eq!(exceeded(Limits::percent(10.0), 101).as_deref(), Some("10 %"));
        let both = Limits::bytes(100).and_percent(10.0);
        assert_eq!(exceeded(both, 101).as_deref(), Some("100 bytes and 10 %"));
        assert_eq!(exceeded(both.and_bytes(200), 200).as_deref(), Some("10 %"));
    }
}
