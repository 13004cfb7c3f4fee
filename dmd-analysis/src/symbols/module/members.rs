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

/// The size of a type, and its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The size of the type in bytes; 0 if it is not known.
    pub size: u64,
    /// The fields, in no order.
    pub fields: Vec<Member>,
}

impl Layout {
    /// Returns the name of the field that contains the byte at this offset.
    #[must_use]
    pub fn field_at(&self, offset: u64) -> Option<&str> {
        let before = self.fields.iter().filter(|field| field.offset <= offset);
        before.max_by_key(|field| field.offset).map(|field| &*field.name)
    }
}

/// The layouts of types, by the paths of the types.
pub type Members = HashMap<String, Layout>;

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
    // The namespaces and types around the entry, by depth, with the sizes of types.
    let mut path: Vec<(isize, String, u64)> = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().ok()? {
        let depth = entry.depth();
        let name = || {
            let name = entry.attr_value(gimli::DW_AT_name)?;
            Some(unit.attr_string(name).ok()?.to_string_lossy().into_owned())
        };
        match entry.tag() {
            gimli::DW_TAG_namespace | gimli::DW_TAG_structure_type => {
                path.retain(|(outer, ..)| *outer < depth);
                let bytes = entry.attr_value(gimli::DW_AT_byte_size);
                let size = bytes.and_then(|bytes| bytes.udata_value()).unwrap_or(0);
                path.extend(name().map(|name| (depth, name, size)));
            }
            gimli::DW_TAG_member => {
                path.retain(|(outer, ..)| *outer < depth);
                let Some(&(outer, _, size)) = path.last() else { continue };
                if outer + 1 != depth {
                    continue;
                }
                let names: Vec<&str> = path.iter().map(|(_, name, _)| &**name).collect();
                let of = names.join("::");
                let at = entry.attr_value(gimli::DW_AT_data_member_location);
                if let Some((at, name)) = at.and_then(|at| at.udata_value()).zip(name())
                    && wanted.contains(&*of)
                {
                    let Layout { size: known, fields } = found.entry(of).or_default();
                    *known = size;
                    // Several units may contain the same type.
                    if !fields.iter().any(|known| known.offset == at) {
                        // Tuple fields are `__0` there.
                        let number = name.strip_prefix("__").filter(|n| n.parse::<u32>().is_ok());
                        let name = number.map_or_else(|| name.clone(), str::to_owned);
                        fields.push(Member { offset: at, name });
                    }
                }
            }
            _ => {}
        }
    }
    Some(())
}
