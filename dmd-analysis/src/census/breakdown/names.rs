//! The names of axes in the JSON of breakdowns, most of them SpiderMonkey's.

use crate::axis::Axis;

/// Returns the value of `by` for an axis.
pub(in crate::census) fn json_name(axis: &Axis) -> &'static str {
    match axis {
        Axis::Stack(_) => "allocationStack",
        Axis::State => "coarseType",
        Axis::File => "filename",
        Axis::SizeClass => "sizeClass",
        axis => axis.name(),
    }
}

/// Returns the property for blocks without a key on an axis; `None` where every block has one.
pub(in crate::census) fn missing_name(axis: &Axis) -> Option<&'static str> {
    match axis {
        Axis::Stack(_) | Axis::Site => Some("noStack"),
        Axis::Type => Some("other"),
        Axis::File => Some("noFilename"),
        Axis::Reporter { .. } => Some("noReporter"),
        Axis::Field => Some("noField"),
        Axis::Scope => Some("noScope"),
        Axis::Thread | Axis::Crate | Axis::Age { .. } => Some("unknown"),
        Axis::State | Axis::Size | Axis::SizeClass => None,
    }
}
