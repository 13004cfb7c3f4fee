//! The blocks that a query is about: by address, type, reporter, site or record.

use std::{error, fmt};

use crate::analysis::records::digest::digest_of;
use crate::analysis::records::{Grouping, SortBy, Stacks};
use crate::analysis::report_names;
use crate::read::Block;
use crate::retention::Retention;
use crate::retention::graph::nodes::NodeSet;

/// The blocks whose paths are searched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The block that contains this address.
    Block(u64),
    /// The blocks of the type with this name.
    Type(String),
    /// The blocks of types with this text in their names.
    TypeWith(String),
    /// The blocks that a path or field with this text in its name reports.
    Reporter(String),
    /// The blocks that were allocated below a function with this text in its name.
    Site(String),
    /// The blocks of this record, from 1, as `about-memory heap records` numbers them.
    Record(usize),
}

/// The error for a target that no block of the dump matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetNotFound(pub(crate) Target);

impl fmt::Display for TargetNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Block(address) => write!(
                f,
                "no block holds 0x{address:x}: name an address of this dump, in hexadecimal, \
                 as `addr` or `block addresses` has it"
            ),
            Target::Type(name) => write!(
                f,
                "no block is of the type `{name}`: `heap records --by type` lists types, and \
                 --type-contains takes a part of a name"
            ),
            Target::TypeWith(text) => write!(
                f,
                "no block is of a type with `{text}` in its name: `heap records --by type` lists \
                 them"
            ),
            Target::Reporter(text) => write!(
                f,
                "no block is reported by a path or field with `{text}` in its name: \
                 `heap records --by reporter` and `heap records --by field` list them"
            ),
            Target::Site(text) => write!(
                f,
                "no block was allocated below a function with `{text}` in its name: \
                 `heap records --by stack` lists them"
            ),
            Target::Record(number) => write!(
                f,
                "there is no record {number}: `heap records` numbers them from 1, biggest first"
            ),
        }
    }
}

impl error::Error for TargetNotFound {}

impl Retention<'_> {
    /// Returns the indices in the dump of a target's blocks, in ascending order.
    #[must_use]
    pub fn blocks_of(&self, target: &Target) -> Vec<usize> {
        self.nodes_of(target).iter().map(|node| node as usize).collect()
    }

    /// Returns the nodes of a target's blocks.
    pub(super) fn nodes_of(&self, target: &Target) -> NodeSet {
        let mut found = NodeSet::new(self.dump.blocks.len());
        let is_of_shape = match target {
            Target::Block(address) => {
                let block = self.ranges.block_at(*address);
                block.into_iter().for_each(|at| _ = found.insert(at.block));
                return found;
            }
            Target::Record(number) => self.is_of_record(*number),
            target => self.of_shapes(|block| self.is_of(target, block)),
        };
        for block in self.blocks() {
            if is_of_shape[self.dump.blocks.shape_of(block as usize)] {
                found.insert(block);
            }
        }
        found
    }

    /// Returns by shape of blocks whether they are of a record, which has this number in the text
    /// of all records.
    fn is_of_record(&self, number: usize) -> Vec<bool> {
        let (how, mut stacks) = (Grouping::default(), Stacks::default());
        let digest = digest_of(self.dump, self.dump.blocks.added_up(), &how, &mut stacks);
        // A scan has one section, whose records differ in their stacks alone.
        let records = digest.sections.iter().flat_map(|section| &section.records);
        let first = SortBy::Usable.first(records.collect(), number);
        let record = number.checked_sub(1).and_then(|at| first.get(at));
        let grouped = stacks.group(self.dump, &how);
        self.of_shapes(|block| record.is_some_and(|of| of.alloc == grouped.alloc_of(block)))
    }

    fn of_shapes(&self, is_of: impl Fn(&Block<'_>) -> bool) -> Vec<bool> {
        self.dump.blocks.added_up().map(|alike| is_of(&alike)).collect()
    }

    fn is_of(&self, target: &Target, block: &Block<'_>) -> bool {
        let site = || self.sites.get(block.kind.alloc);
        match target {
            Target::Type(name) => site().block_type.describe() == *name,
            Target::TypeWith(text) => site().block_type.describe().contains(text.as_str()),
            Target::Site(text) => site().frames.iter().any(|frame| frame.contains(text)),
            Target::Reporter(text) => {
                let names = report_names(self.dump, block, |site| {
                    let part = |part: &Option<String>| part.clone().unwrap_or_default();
                    format!("{} {}.{}", site.path, part(&site.type_name), part(&site.field))
                });
                names.is_some_and(|names| names.iter().any(|name| name.contains(text)))
            }
            Target::Block(_) | Target::Record(_) => false,
        }
    }
}
