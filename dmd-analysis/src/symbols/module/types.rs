//! Reads the types, statics and tables of virtual functions of a module from debug information.

mod finish;
mod locals;

use addr2line::gimli::{self, AttributeValue, EndianSlice, UnitRef};
use rustc_hash::FxHashMap;

use super::dwarf::Slice;
use super::elf::Elf;
use super::locate::Files;
use crate::read::StackFrame;
use crate::symbols::types::{TypeId, Types};
use locals::RawLocal;

/// The position of an entry in the debug information, over all units.
type Place = usize;

/// A type whose references are places still.
#[derive(Debug, Default)]
struct Raw {
    name: String,
    size: u64,
    kind: RawKind,
    arguments: Vec<(Box<str>, Place)>,
    fields: Vec<RawField>,
    /// The offset and the type of the tag.
    tag: Option<(u64, Option<Place>)>,
    variants: Vec<(Option<u64>, RawField)>,
    /// The number of elements of an array.
    count: u64,
    /// The type that a pointer points at, or of an array's elements.
    of: Option<Place>,
    /// The type whose table of virtual functions this is.
    containing: Option<Place>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
enum RawKind {
    #[default]
    Plain,
    Pointer,
    Array,
    Struct,
    Union,
}

#[derive(Debug)]
struct RawField {
    name: Box<str>,
    offset: u64,
    of: Option<Place>,
}

/// A static: its address, its name and the place of its type.
#[derive(Debug)]
struct RawStatic {
    address: u64,
    of: Place,
    line: u32,
}

/// Everything that was read so far. Equal types of several units are kept once.
#[derive(Debug, Default)]
struct Reader {
    raw: Vec<Raw>,
    known: FxHashMap<(String, u64, RawKind), u32>,
    /// The place of each entry of a type, and the number of the type.
    places: Vec<(Place, u32)>,
    statics: Vec<RawStatic>,
    locals: Vec<RawLocal>,
    thread_locals: Vec<RawThreadLocal>,
}

/// A thread-local variable: its name, its offset among all of the module, and the place of its
/// type.
#[derive(Debug)]
struct RawThreadLocal {
    name: String,
    offset: u64,
    of: Place,
}

/// An entry around the current one.
struct Open {
    depth: isize,
    name: String,
    of: Around,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// A unit or a namespace.
    Namespace,
    /// The type with this number.
    Type(u32),
    /// The variants of the type with this number.
    Variants(u32),
    /// One variant, with the value of its tag.
    Variant(u32, Option<u64>),
    /// An entry whose members are of no interest: of a function, or of a type that is known.
    Other,
}

/// Returns the types of a module, and the variables of those frames that are in its code; none
/// without debug information.
pub(crate) fn types(files: &Files, path: &str, frames: &[StackFrame]) -> Types {
    let mut reader = Reader::default();
    let Ok(elf) = Elf::parse(files.debug.as_ref().unwrap_or(&files.main)) else {
        return Types::default();
    };
    let sections = elf.dwarf_sections();
    let dwarf = sections.borrow(|section| EndianSlice::new(section, elf.endian()));
    let frames: Vec<_> =
        frames.iter().enumerate().filter(|(_, frame)| frame.module == path).collect();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let Ok(unit) = dwarf.unit(header) {
            // Damaged units are ignored, because types are optional.
            let _ = reader.read_unit(unit.unit_ref(&dwarf));
            let _ = locals::read_unit(unit.unit_ref(&dwarf), &frames, &mut reader.locals);
        }
    }
    let mut types = finish::finish(reader, elf.thread_local_bytes());
    path.clone_into(&mut types.module);
    types
}

impl Reader {
    fn read_unit(&mut self, unit: UnitRef<'_, Slice<'_>>) -> Option<()> {
        let mut around: Vec<Open> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().ok()? {
            let depth = entry.depth();
            while around.last().is_some_and(|outer| outer.depth >= depth) {
                around.pop();
            }
            let parent = around.last().map_or(Around::Namespace, |outer| outer.of);
            if parent == Around::Other && entry.tag() != gimli::DW_TAG_structure_type {
                // Nested types of a known type are known too, but their places are needed.
                if !matches!(entry.tag(), gimli::DW_TAG_variant_part | gimli::DW_TAG_variant) {
                    continue;
                }
            }
            let entry = Entry { unit, entry };
            match entry.entry.tag() {
                gimli::DW_TAG_compile_unit => {}
                gimli::DW_TAG_namespace => {
                    let name = entry.name().unwrap_or_default();
                    around.push(Open { depth, name, of: Around::Namespace });
                }
                gimli::DW_TAG_subprogram => {
                    around.push(Open { depth, name: String::new(), of: Around::Other });
                }
                gimli::DW_TAG_variable if parent == Around::Namespace => {
                    self.add_static(&entry);
                    self.add_thread_local(&entry, &around);
                }
                _ => {
                    if let Some(of) = self.read_entry(&entry, parent, &around) {
                        let name = entry.name().unwrap_or_default();
                        around.push(Open { depth, name, of });
                    }
                }
            }
        }
        Some(())
    }

    /// Reads an entry of a type or of a part of it. Returns what its children belong to.
    fn read_entry(
        &mut self,
        entry: &Entry<'_, '_>,
        parent: Around,
        around: &[Open],
    ) -> Option<Around> {
        let kind = match entry.entry.tag() {
            gimli::DW_TAG_structure_type => RawKind::Struct,
            gimli::DW_TAG_union_type => RawKind::Union,
            gimli::DW_TAG_pointer_type => RawKind::Pointer,
            gimli::DW_TAG_array_type => RawKind::Array,
            gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type => RawKind::Plain,
            tag => return self.read_part(entry, tag, parent),
        };
        Some(self.add_type(entry, kind, around))
    }

    fn add_type(&mut self, entry: &Entry<'_, '_>, kind: RawKind, around: &[Open]) -> Around {
        let own = entry.name().unwrap_or_default();
        let outer = around.iter().filter(|outer| !outer.name.is_empty());
        let mut name = outer.map(|outer| format!("{}::", outer.name)).collect::<String>();
        name.push_str(&own);
        let size = entry.number(gimli::DW_AT_byte_size).unwrap_or(match kind {
            RawKind::Pointer => u64::from(entry.unit.encoding().address_size),
            _ => 0,
        });
        let of = entry.reference(gimli::DW_AT_type);
        let next = u32::try_from(self.raw.len()).unwrap_or(u32::MAX);
        // Arrays and some pointers have no name.
        let number = if own.is_empty() {
            next
        } else {
            *self.known.entry((name.clone(), size, kind)).or_insert(next)
        };
        self.places.extend(entry.place().map(|place| (place, number)));
        if number != next {
            return Around::Other;
        }
        let containing = entry.reference(gimli::DW_AT_containing_type);
        self.raw.push(Raw { name, size, kind, of, containing, ..Raw::default() });
        Around::Type(number)
    }

    fn read_part(
        &mut self,
        entry: &Entry<'_, '_>,
        tag: gimli::DwTag,
        parent: Around,
    ) -> Option<Around> {
        match (tag, parent) {
            (gimli::DW_TAG_variant_part, Around::Type(number)) => Some(Around::Variants(number)),
            (gimli::DW_TAG_variant, Around::Variants(number)) => {
                Some(Around::Variant(number, entry.number(gimli::DW_AT_discr_value)))
            }
            (gimli::DW_TAG_variant_part | gimli::DW_TAG_variant, _) => Some(Around::Other),
            (gimli::DW_TAG_member, Around::Type(number)) => {
                self.raw[number as usize].fields.push(entry.field());
                None
            }
            (gimli::DW_TAG_member, Around::Variants(number)) => {
                let RawField { offset, of, .. } = entry.field();
                self.raw[number as usize].tag = Some((offset, of));
                None
            }
            (gimli::DW_TAG_member, Around::Variant(number, value)) => {
                self.raw[number as usize].variants.push((value, entry.field()));
                None
            }
            (gimli::DW_TAG_template_type_parameter, Around::Type(number)) => {
                let of = entry.reference(gimli::DW_AT_type)?;
                let name = entry.name()?.into_boxed_str();
                self.raw[number as usize].arguments.push((name, of));
                None
            }
            (gimli::DW_TAG_subrange_type, Around::Type(number)) => {
                let last = entry.number(gimli::DW_AT_upper_bound);
                let count = entry.number(gimli::DW_AT_count);
                let count = count.or_else(|| last?.checked_add(1)).unwrap_or(0);
                self.raw[number as usize].count = count;
                None
            }
            _ => None,
        }
    }

    fn add_thread_local(&mut self, entry: &Entry<'_, '_>, around: &[Open]) {
        let found = entry.thread_local_offset().zip(entry.reference(gimli::DW_AT_type));
        if let Some((offset, of)) = found {
            let name = path(&entry.name().unwrap_or_default(), around);
            self.thread_locals.push(RawThreadLocal { name, offset, of });
        }
    }

    fn add_static(&mut self, entry: &Entry<'_, '_>) {
        let address = entry.address();
        if let Some((address, of)) = address.zip(entry.reference(gimli::DW_AT_type)) {
            let line = entry.number(gimli::DW_AT_decl_line).unwrap_or(0);
            let line = u32::try_from(line).unwrap_or(0);
            self.statics.push(RawStatic { address, of, line });
        }
    }
}

/// Returns the name of a variable within others: `shop::CACHE`. What the macro `thread_local` adds
/// begins with a brace.
fn path(own: &str, around: &[Open]) -> String {
    let names = around.iter().map(|outer| &*outer.name).chain([own]);
    let names = names.filter(|name| !name.is_empty()).take_while(|name| !name.starts_with('{'));
    names.collect::<Vec<_>>().join("::")
}

/// An entry of the debug information with its unit.
struct Entry<'e, 'd> {
    unit: UnitRef<'e, Slice<'d>>,
    entry: &'e gimli::DebuggingInformationEntry<Slice<'d>>,
}

impl Entry<'_, '_> {
    fn name(&self) -> Option<String> {
        let name = self.entry.attr_value(gimli::DW_AT_name)?;
        Some(self.unit.attr_string(name).ok()?.to_string_lossy().into_owned())
    }

    fn number(&self, attribute: gimli::DwAt) -> Option<u64> {
        let value = self.entry.attr_value(attribute)?;
        value.udata_value().or_else(|| value.sdata_value().map(i64::cast_unsigned))
    }

    fn place(&self) -> Option<Place> {
        let offset = self.entry.offset();
        offset.to_debug_info_offset(&self.unit.header).map(|offset| offset.0)
    }

    fn reference(&self, attribute: gimli::DwAt) -> Option<Place> {
        match self.entry.attr_value(attribute)? {
            AttributeValue::UnitRef(offset) => {
                offset.to_debug_info_offset(&self.unit.header).map(|offset| offset.0)
            }
            AttributeValue::DebugInfoRef(offset) => Some(offset.0),
            _ => None,
        }
    }

    fn field(&self) -> RawField {
        RawField {
            name: self.name().unwrap_or_default().into_boxed_str(),
            offset: self.number(gimli::DW_AT_data_member_location).unwrap_or(0),
            of: self.reference(gimli::DW_AT_type),
        }
    }

    /// Returns the offset of a variable among the thread-local ones of the module.
    fn thread_local_offset(&self) -> Option<u64> {
        let AttributeValue::Exprloc(expression) = self.entry.attr_value(gimli::DW_AT_location)?
        else {
            return None;
        };
        let mut operations = expression.operations(self.unit.encoding());
        let gimli::Operation::UnsignedConstant { value } = operations.next().ok()?? else {
            return None;
        };
        matches!(operations.next().ok()??, gimli::Operation::TLS).then_some(value)
    }

    /// Returns the address of a variable that is at one place all the time.
    fn address(&self) -> Option<u64> {
        let AttributeValue::Exprloc(expression) = self.entry.attr_value(gimli::DW_AT_location)?
        else {
            return None;
        };
        let mut operations = expression.operations(self.unit.encoding());
        let first = operations.next().ok()??;
        let address = match first {
            gimli::Operation::Address { address } => address,
            gimli::Operation::AddressIndex { index } => self.unit.address(index).ok()?,
            _ => return None,
        };
        operations.next().ok()?.is_none().then_some(address)
    }
}

/// Returns the number of a type from its place in the raw list.
fn id(number: u32) -> TypeId {
    TypeId(number)
}
