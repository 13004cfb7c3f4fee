//! Names of functions with type arguments: `DW_AT_name`, since legacy mangled names lack them.

use std::sync::Arc;

use addr2line::gimli::{self, AttributeValue, DebugInfoOffset, Dwarf, UnitOffset, UnitRef};
use rustc_hash::FxHashMap;

use super::Slice;

/// The number of references to follow from a call to the function: origin, then declaration.
const MAX_STEPS: usize = 8;

/// A finder of names, which keeps the units that references lead to.
pub(crate) struct OwnNames<'a> {
    dwarf: Dwarf<Slice<'a>>,
    /// The start of each unit, sorted.
    starts: Option<Vec<DebugInfoOffset>>,
    units: FxHashMap<DebugInfoOffset, Option<gimli::Unit<Slice<'a>>>>,
}

enum Next {
    InUnit(UnitOffset),
    InFile(DebugInfoOffset),
}

impl<'a> OwnNames<'a> {
    pub(crate) fn new(dwarf: Dwarf<Slice<'a>>) -> Self {
        Self { dwarf, starts: None, units: FxHashMap::default() }
    }

    /// Returns the name of the function whose entry is at `offset` of `unit`.
    pub(crate) fn find(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        offset: UnitOffset,
    ) -> Option<Arc<str>> {
        let mut next = match step(unit, offset)? {
            Ok(name) => return Some(name),
            Err(Next::InFile(offset)) => offset,
            Err(Next::InUnit(offset)) => match self.in_unit(unit, offset)? {
                Ok(name) => return Some(name),
                Err(offset) => offset,
            },
        };
        for _ in 0..MAX_STEPS {
            let start = self.start_of_unit(next)?;
            if !self.units.contains_key(&start) {
                let unit =
                    self.dwarf.unit_header(start).and_then(|header| self.dwarf.unit(header)).ok();
                self.units.insert(start, unit);
            }
            let unit = self.units.get(&start)?.as_ref()?.unit_ref(&self.dwarf);
            match self.in_unit(unit, UnitOffset(next.0 - start.0))? {
                Ok(name) => return Some(name),
                Err(offset) => next = offset,
            }
        }
        None
    }

    /// Follows references to a name, or until they leave the unit.
    fn in_unit(
        &self,
        unit: UnitRef<'_, Slice<'a>>,
        mut offset: UnitOffset,
    ) -> Option<Result<Arc<str>, DebugInfoOffset>> {
        for _ in 0..MAX_STEPS {
            match step(unit, offset)? {
                Ok(name) => return Some(Ok(name)),
                Err(Next::InUnit(next)) => offset = next,
                Err(Next::InFile(next)) => return Some(Err(next)),
            }
        }
        None
    }

    fn start_of_unit(&mut self, offset: DebugInfoOffset) -> Option<DebugInfoOffset> {
        let dwarf = &self.dwarf;
        let starts = self.starts.get_or_insert_with(|| {
            let mut starts = Vec::new();
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                starts.extend(header.debug_info_offset());
            }
            starts
        });
        let after = starts.partition_point(|&start| start <= offset);
        starts.get(after.checked_sub(1)?).copied()
    }
}

/// Returns the name of an entry, or the next entry that it refers to.
fn step(unit: UnitRef<'_, Slice<'_>>, offset: UnitOffset) -> Option<Result<Arc<str>, Next>> {
    let entry = unit.entry(offset).ok()?;
    if let Some(name) = entry.attr_value(gimli::DW_AT_name) {
        return Some(Ok(unit.attr_string(name).ok()?.to_string_lossy().into()));
    }
    let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
    match origin.or_else(|| entry.attr_value(gimli::DW_AT_specification))? {
        AttributeValue::UnitRef(offset) => Some(Err(Next::InUnit(offset))),
        AttributeValue::DebugInfoRef(offset) => Some(Err(Next::InFile(offset))),
        _ => None,
    }
}
