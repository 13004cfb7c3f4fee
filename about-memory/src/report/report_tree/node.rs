//! Defines the nodes of a report tree and the processes they belong to.

use super::names::{Name, Span};
use crate::report::amount::Amount;
use crate::report::numbers::Unit;
use memreport::snapshot::read::Field;

/// The place of a node in its report_tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) const NONE: NodeId = NodeId(u32::MAX);
    /// Parents of roots are above this: two for each process, one for its trees and one for its flat measurements.
    pub(super) const LAST: u32 = u32::MAX / 2;

    pub(super) fn root_parent(process: usize, is_flat: bool) -> Self {
        let process = u32::try_from(process).unwrap_or(u32::MAX) % (NodeId::LAST / 2);
        NodeId(u32::MAX - 1 - 2 * process - u32::from(is_flat))
    }

    pub(super) fn is_none(self) -> bool {
        self == NodeId::NONE
    }
}

/// In which of two compared files a report stands, if it does not stand in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// In both, or nothing is compared.
    #[default]
    Both,
    /// Only in the first: `[-]`.
    First,
    /// Only in the second: `[+]`.
    Second,
    /// In neither: added because one file has a leaf where the other has a tree, `[!]`.
    Added,
}

/// One segment of a path.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Name,
    pub(crate) parent: NodeId,
    pub(crate) first_child: NodeId,
    pub(super) last_child: NodeId,
    /// The parent's next child, in the order of arrival.
    pub(crate) next: NodeId,
    pub(crate) children: u32,
    /// The only child, once it has become one with this node; its name follows this one's.
    pub(crate) absorbed: NodeId,
    /// How many reports were added up here; 0 for one.
    pub(crate) merged: u32,
    pub(super) description: Span,
    /// That of the leaf; after [`ReportTree::total`], of each node the sum of all at or below it.
    pub(crate) amount: Amount,
    pub(crate) unit: Unit,
    pub(crate) presence: Presence,
}

/// What is known of one process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// Whether this is the process that wrote the file, which its reports do not name.
    pub(crate) is_writer: bool,
    pub(crate) resident: Amount,
    pub(crate) resident_unique: Amount,
    /// Whether any report is left after filtering.
    pub(crate) has_reports: bool,
    pub(crate) trees: Vec<NodeId>,
    pub(crate) flats: Vec<NodeId>,
    pub(super) heap_total: Amount,
}

impl Process {
    /// The main process comes first and is counted with all its resident memory.
    pub(crate) fn is_main(&self) -> bool {
        self.is_writer || self.name.starts_with("Main Process")
    }
}

impl Process {
    /// How much of the machine's memory this process has to itself, roughly; what is shared is counted with the main one.
    pub(crate) fn resident_share(&self) -> Amount {
        let share = if self.is_main() || !self.resident_unique.is_truthy() {
            &self.resident
        } else {
            &self.resident_unique
        };
        if share.is_truthy() { share.clone() } else { Amount::Number(0.0) }
    }
}

/// The unit that a report names by number.
pub(crate) fn unit(field: &Field<'_>) -> Unit {
    let known = [Unit::Bytes, Unit::Count, Unit::CountCumulative, Unit::Percentage];
    let named = known
        .into_iter()
        .zip([0.0, 1.0, 2.0, 3.0])
        .find(|(_, number)| *field == Field::Number(*number));
    named.map_or(Unit::Unknown, |(unit, _)| unit)
}
