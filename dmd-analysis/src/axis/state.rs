//! The number of reports that count a block, as far as it matters.

/// The number of reports that count a block: none, one, or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportState {
    /// No report counts it: dark matter.
    Unreported,
    /// One report counts it, which is right.
    Once,
    /// Two reports or more count it.
    Twice,
    /// The dump does not contain reports.
    Other,
}

impl ReportState {
    /// The names of all states, in their order.
    pub(crate) const NAMES: [&'static str; 4] = ["unreported", "once", "twice", "other"];

    /// Returns the state of blocks that `number` reports count.
    #[must_use]
    pub fn of_reports(number: usize) -> Self {
        match number {
            0 => ReportState::Unreported,
            1 => ReportState::Once,
            _ => ReportState::Twice,
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
