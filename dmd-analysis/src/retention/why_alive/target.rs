//! The blocks that a query is about: by address, type, reporter, site or record.

use std::{error, fmt};

use crate::analysis::records::{Grouping, SortBy, Stacks, digest};
use crate::analysis::report_names;
use crate::read::Block;
use crate::retention::Retention;

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
    /// The blocks of this record, from 1, as `about-memory dmd` numbers them.
    Record(usize),
}

/// The error for a target that no block of the dump matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetNotFound(pub(super) Target);

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
                "no block is of the type `{name}`: `heap records --by type` lists types, and --type-contains \
                 takes a part of a name"
            ),
            Target::TypeWith(text) => {
                write!(
                    f,
                    "no block is of a type with `{text}` in its name: `heap records --by type` lists them"
                )
            }
            Target::Reporter(text) => write!(
                f,
                "no block is reported by a path or field with `{text}` in its name: \
                 `dmd --by reporter` and `dmd --by field` list them"
            ),
            Target::Site(text) => write!(
                f,
                "no block was allocated below a function with `{text}` in its name: `dmd --by stack` lists them"
            ),
            Target::Record(number) => {
                write!(f, "there is no record {number}: `dmd` numbers them from 1, biggest first")
            }
        }
    }
}

impl error::Error for TargetNotFound {}

impl Retention<'_> {
    /// Returns the indices of the target's blocks, or `None` if there are none.
    pub(super) fn blocks_of(&self, target: &Target) -> Option<Vec<u32>> {
        let dump = self.dump;
        let frames = |text: &str, block: &Block<'_>| {
            self.sites.get(block.kind.alloc).frames.iter().any(|frame| frame.contains(text))
        };
        let reporters = |text: &str, block: &Block<'_>| {
            let names = report_names(dump, block, |site| {
                let part = |part: &Option<String>| part.clone().unwrap_or_default();
                format!("{} {}.{}", site.path, part(&site.type_name), part(&site.field))
            });
            names.is_some_and(|names| names.iter().any(|name| name.contains(text)))
        };
        let is_target = |block: &Block<'_>| match target {
            Target::Type(name) => self.sites.get(block.kind.alloc).block_type.describe() == *name,
            Target::TypeWith(text) => {
                self.sites.get(block.kind.alloc).block_type.describe().contains(text.as_str())
            }
            Target::Reporter(text) => reporters(text, block),
            Target::Site(text) => frames(text, block),
            Target::Block(_) | Target::Record(_) => false,
        };
        let found = match target {
            Target::Block(address) => {
                self.ranges.block_at(*address).map(|found| vec![found.block])?
            }
            Target::Record(number) => self.record(*number)?,
            _ => dump
                .blocks
                .iter()
                .zip(0..)
                .filter(|(block, _)| is_target(block))
                .map(|it| it.1)
                .collect(),
        };
        Some(found).filter(|found| !found.is_empty())
    }

    /// Returns the blocks of a record by its number in the text of all records.
    fn record(&self, number: usize) -> Option<Vec<u32>> {
        let mut stacks = Stacks::default();
        let digest = digest(self.dump, &Grouping::default(), &mut stacks);
        let records = digest.sections.first()?.records.iter().collect();
        let first = SortBy::Usable.first(records, number);
        let record = first.get(number.checked_sub(1)?)?;
        let block = |address: u64| self.ranges.block_at(address).map(|found| found.block);
        Some(record.addrs.iter().filter_map(block).collect())
    }
}
