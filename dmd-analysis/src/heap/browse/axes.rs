//! The axes of a tree, and the keys of rows on them.

use std::sync::Arc;

use super::super::model::{Heap, Report, Row};
use crate::axis::{Attributes, Axis, AxisError, GroupBy, ReportState, StackCut};

/// The names of the axes that a tree can be grouped by.
pub const AXES: [&str; 9] =
    ["stack", "type", "scope", "thread", "reporter", "field", "state", "size", "size-class"];

/// Returns the axes of a tree that is grouped like this.
///
/// One axis alone is followed by type and stack, as far as it is neither.
///
/// # Errors
///
/// Returns an error for axes that rows have no key on.
///
/// # Examples
///
/// ```
/// use memreport_analysis::heap::browse::{Axis, axes};
///
/// assert_eq!(axes("scope".parse()?)?, [Axis::Scope, Axis::Type, Axis::stack()]);
/// assert!(axes("age".parse()?).is_err());
/// # Ok::<(), memreport_analysis::axis::AxisError>(())
/// ```
pub fn axes(group_by: GroupBy) -> Result<Vec<Axis>, AxisError> {
    let mut axes = group_by.each_of(&AXES)?.axes().to_vec();
    if let [alone] = &axes[..] {
        let inner =
            [Axis::Type, Axis::stack()].into_iter().filter(|axis| axis.name() != alone.name());
        axes.extend(inner.collect::<Vec<_>>());
    }
    Ok(axes)
}

/// The rows of a heap as a source of keys.
pub(super) struct Rows<'h>(pub(super) &'h Heap);

impl Attributes for Rows<'_> {
    type Block = Row;

    fn size(&self, row: &Row) -> u64 {
        row.kind.size
    }

    fn state(&self, row: &Row) -> ReportState {
        row.kind.class.into()
    }

    fn reporters(&mut self, row: &Row) -> Vec<String> {
        row.kind.reports.iter().map(|report| self.0.text(report.path).to_owned()).collect()
    }

    fn fields(&mut self, row: &Row) -> Vec<String> {
        let name = |report: &Report| self.0.text(report.field.unwrap_or(report.path)).to_owned();
        row.kind.reports.iter().map(name).collect()
    }

    fn scopes(&mut self, row: &Row) -> Vec<String> {
        self.0.scope_names(row.kind.scope).map(str::to_owned).collect()
    }

    fn thread(&mut self, row: &Row) -> Option<String> {
        row.kind.thread.map(|name| self.0.text(name).to_owned())
    }

    fn type_name(&mut self, row: &Row) -> Option<String> {
        row.kind.block_type.map(|name| self.0.text(name).to_owned())
    }

    fn stack(&mut self, row: &Row, cut: StackCut) -> Option<Arc<[Arc<str>]>> {
        let frames = cut.apply(self.0.stack(row.kind.stack).collect());
        Some(frames.iter().map(|frame| frame.function.as_str().into()).collect())
    }
}
