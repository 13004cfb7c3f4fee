//! Defines the nodes of a report tree and the processes they belong to.

use super::names::{Name, Span};
use crate::report::amount::Amount;
use crate::report::numbers::Unit;
use memreport::snapshot::read::Field;

/// The index of a node in its report tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) const NONE: NodeId = NodeId(u32::MAX);
    /// The last index of a node. Above it are the parents of roots: two for each process, for trees
    /// and for single measurements.
    pub(super) const LAST: u32 = u32::MAX / 2;

    pub(super) fn root_parent(process: usize, is_flat: bool) -> Self {
        let process = u32::try_from(process).unwrap_or(u32::MAX) % (NodeId::LAST / 2);
        NodeId(u32::MAX - 1 - 2 * process - u32::from(is_flat))
    }

    pub(super) fn is_none(self) -> bool {
        self == NodeId::NONE
    }
}

/// The files of a comparison that contain a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// In both, or nothing is compared.
    #[default]
    Both,
    /// Only in the first: `[-]`.
    First,
    /// Only in the second: `[+]`.
    Second,
    /// In neither: added because one file has a leaf at the path and the other a tree, `[!]`.
    Added,
}

/// One segment of a path.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Name,
    pub(crate) parent: NodeId,
    pub(crate) first_child: NodeId,
    pub(super) last_child: NodeId,
    /// The parent's next child, in order of arrival.
    pub(crate) next: NodeId,
    pub(crate) children: u32,
    /// The only child, after it was merged into this node; its name follows this one's.
    pub(crate) absorbed: NodeId,
    /// The number of reports that were added up; 0 for one.
    pub(crate) merged: u32,
    pub(super) description: Span,
    /// The amount of the leaf; after [`ReportTree::total`], the sum of all leaves at or below the
    /// node.
    pub(crate) amount: Amount,
    pub(crate) unit: Unit,
    pub(crate) presence: Presence,
    /// True if a reporter of the program's reports at or below it.
    pub(crate) has_reporter: bool,
}

/// A process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// True for the process that wrote the file. Its reports do not name it.
    pub(crate) is_writer: bool,
    pub(crate) resident: Amount,
    pub(crate) resident_unique: Amount,
    /// True if any report matches the filter.
    pub(crate) has_reports: bool,
    pub(crate) trees: Vec<NodeId>,
    pub(crate) flats: Vec<NodeId>,
    pub(super) heap_total: Amount,
}

impl Process {
    /// Returns whether this is the main process, which comes first and counts with all its resident
    /// memory.
    pub(crate) fn is_main(&self) -> bool {
        self.is_writer || self.name.starts_with("Main Process")
    }
}

impl Process {
    /// Returns the approximate memory of this process alone. Shared memory counts with the main
    /// process.
    pub(crate) fn resident_share(&self) -> Amount {
        let share = if self.is_main() || !self.resident_unique.is_truthy() {
            &self.resident
        } else {
            &self.resident_unique
        };
        if share.is_truthy() { share.clone() } else { Amount::Number(0.0) }
    }
}

/// Returns the unit of a report's `units` field.
pub(crate) fn unit(field: &Field<'_>) -> Unit {
    let known = [Unit::Bytes, Unit::Count, Unit::CountCumulative, Unit::Percentage];
    let named = known
        .into_iter()
        .zip([0.0, 1.0, 2.0, 3.0])
        .find(|(_, number)| *field == Field::Number(*number));
    named.map_or(Unit::Unknown, |(unit, _)| unit)
}
