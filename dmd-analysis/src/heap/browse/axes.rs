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
        Some(frames.iter().map(|frame| frame.name.as_str().into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::axis::key;
    use crate::heap::HeapOptions;
    use crate::heap::tests::HEAP;
    use crate::read::read_slice;

    #[test]
    fn rows_have_keys_on_every_axis_of_a_tree() {
        let text = HEAP.replace(r#""needs":[],"#, r#""needs":[],"scopes":[[0,"a"],[1,"b"]],"#);
        let text = text.replace(r#"{"req":24,"#, r#"{"req":24,"scope":2,"#);
        let heap =
            Heap::new(&read_slice(text.as_bytes()).unwrap(), &HeapOptions::default()).unwrap();
        let keys = |axis: &Axis| -> BTreeSet<String> {
            let keys = heap.rows.iter().filter_map(|row| key(&mut Rows(&heap), row, axis));
            keys.map(|key| key.describe()).collect()
        };
        let table: [(Axis, &[&str]); 7] = [
            (Axis::reporter(), &["explicit/cache", "explicit/cache and explicit/pool"]),
            (Axis::Field, &["shop::Cache.entries", "shop::Cache.entries and explicit/pool"]),
            (Axis::Scope, &["a > b"]),
            (Axis::Thread, &["main (1)", "thread 3", "worker (2)"]),
            (Axis::Type, &["[u8]"]),
            (Axis::State, &["once", "twice", "unreported"]),
            (
                Axis::SizeClass,
                &["17-32", "2049-4096", "32769-65536", "33-64", "524289-1048576", "9-16"],
            ),
        ];
        for (axis, expected) in table {
            assert!(keys(&axis).iter().eq(expected), "{axis:?}: {:?}", keys(&axis));
        }
    }
}
