//! The fields of types, from debug information.

use std::collections::{HashMap, HashSet};

use addr2line::gimli::{self, EndianSlice, UnitRef};

use super::dwarf::Slice;
use super::elf::Elf;
use super::locate::Files;

/// A field of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The offset of the field in bytes.
    pub offset: u64,
    /// The name of the field.
    pub name: String,
}

/// The fields of types, by the paths of the types.
pub type Members = HashMap<String, Vec<Member>>;

/// Returns the fields of the wanted types that are in the module's debug information.
pub(crate) fn members(files: &Files, wanted: &HashSet<&str>) -> Members {
    let mut found = Members::new();
    let Ok(elf) = Elf::parse(files.debug.as_ref().unwrap_or(&files.main)) else { return found };
    let sections = elf.dwarf_sections();
    let dwarf = sections.borrow(|section| EndianSlice::new(section, elf.endian()));
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next()
        && found.len() < wanted.len()
    {
        if let Ok(unit) = dwarf.unit(header) {
            // Damaged units are ignored, because names are optional.
            let _ = read_unit(unit.unit_ref(&dwarf), wanted, &mut found);
        }
    }
    found
}

fn read_unit(
    unit: UnitRef<'_, Slice<'_>>,
    wanted: &HashSet<&str>,
    found: &mut Members,
) -> Option<()> {
    // The namespaces and types around the entry, by depth.
    let mut path: Vec<(isize, String)> = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().ok()? {
        let depth = entry.depth();
        let name = || {
            let name = entry.attr_value(gimli::DW_AT_name)?;
            Some(unit.attr_string(name).ok()?.to_string_lossy().into_owned())
        };
        match entry.tag() {
            gimli::DW_TAG_namespace | gimli::DW_TAG_structure_type => {
                path.retain(|(outer, _)| *outer < depth);
                path.extend(name().map(|name| (depth, name)));
            }
            gimli::DW_TAG_member => {
                path.retain(|(outer, _)| *outer < depth);
                let Some((outer, _)) = path.last() else { continue };
                if *outer + 1 != depth {
                    continue;
                }
                let names: Vec<&str> = path.iter().map(|(_, name)| &**name).collect();
                let of = names.join("::");
                let at = entry.attr_value(gimli::DW_AT_data_member_location);
                if let Some((at, name)) = at.and_then(|at| at.udata_value()).zip(name())
                    && wanted.contains(&*of)
                {
                    let fields = found.entry(of).or_default();
                    // Several units may contain the same type.
                    if !fields.iter().any(|known| known.offset == at) {
                        fields.push(Member { offset: at, name });
                    }
                }
            }
            _ => {}
        }
    }
    Some(())
}
