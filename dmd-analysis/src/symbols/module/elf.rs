//! ELF files: build id, sections, and functions by address.

use std::borrow::Cow;

use addr2line::gimli::{self, DwarfPackageSections, DwarfSections, RunTimeEndian, SectionId};
use object::elf;
use object::read::elf::ProgramHeader as _;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::file;

/// A parsed ELF file.
pub(crate) struct Elf<'a>(object::File<'a>);

impl<'a> Elf<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        object::File::parse(bytes).map(Self).map_err(|error| error.to_string())
    }

    /// Returns the GNU build id in hexadecimal.
    pub(crate) fn build_id(&self) -> Option<String> {
        let id = self.0.build_id().ok()??;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the name and checksum of the separate debug file.
    pub(crate) fn debug_link(&self) -> Option<(String, u32)> {
        let (name, crc) = self.0.gnu_debuglink().ok()??;
        Some((String::from_utf8_lossy(name).into_owned(), crc))
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        self.0.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
    }

    pub(crate) fn endian(&self) -> RunTimeEndian {
        if self.0.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
    }

    /// Returns the lowest address of the segments, which is 0 for position-independent files.
    pub(crate) fn first_address(&self) -> u64 {
        self.0.segments().map(|segment| segment.address()).min().unwrap_or(0)
    }

    /// Returns the bytes from a program's first thread-local variable to the thread pointer, on
    /// x86-64 (variant II of the ABI for thread-local storage); 0 without any.
    pub(crate) fn thread_local_bytes(&self) -> u64 {
        let object::File::Elf64(file) = &self.0 else { return 0 };
        let endian = file.endian();
        let segments = file.elf_program_headers().iter();
        let mut bytes =
            segments.filter(|header| header.p_type(endian) == elf::PT_TLS).map(|header| {
                let (size, align) = (header.p_memsz(endian), header.p_align(endian).max(1));
                size.checked_next_multiple_of(align).unwrap_or(0)
            });
        bytes.next().unwrap_or(0)
    }

    pub(crate) fn dwarf_sections(&self) -> DwarfSections<Cow<'a, [u8]>> {
        let Ok(sections) =
            DwarfSections::load(|id| Ok::<_, std::convert::Infallible>(self.section(id.name())));
        sections
    }

    /// Returns the sections of a `.dwo` file.
    pub(crate) fn split_sections(&self) -> DwarfSections<Cow<'a, [u8]>> {
        let Ok(sections) =
            DwarfSections::load(|id| Ok::<_, std::convert::Infallible>(self.split_section(id)));
        sections
    }

    /// Returns the sections of a `.dwp` file.
    pub(crate) fn package_sections(&self) -> Option<DwarfPackageSections<Cow<'a, [u8]>>> {
        DwarfPackageSections::load(|id| Ok::<_, gimli::Error>(self.split_section(id))).ok()
    }

    fn split_section(&self, id: SectionId) -> Cow<'a, [u8]> {
        id.dwo_name().map_or(Cow::Borrowed(&[]), |name| self.section(name))
    }

    /// Returns the unpacked bytes of a section. A missing or damaged one is empty, because debug
    /// information is optional. So is one that unpacks to more than a file may have.
    fn section(&self, name: &str) -> Cow<'a, [u8]> {
        let packed = self.0.section_by_name(name).and_then(|found| found.compressed_data().ok());
        let packed = packed.filter(|packed| packed.uncompressed_size <= file::LARGEST);
        packed.and_then(|packed| packed.decompress().ok()).unwrap_or_default()
    }

    /// Returns the statics, sorted by address, one for each address.
    pub(crate) fn statics(&self) -> Vec<Function<'a>> {
        named(self.0.symbols(), SymbolKind::Data)
    }

    /// Returns the functions of the symbol table, or of the dynamic one if the file is stripped.
    pub(crate) fn functions(&self) -> Vec<Function<'a>> {
        let functions = named(self.0.symbols(), SymbolKind::Text);
        if functions.is_empty() {
            named(self.0.dynamic_symbols(), SymbolKind::Text)
        } else {
            functions
        }
    }
}

/// A function of the symbol table, or a static.
#[derive(Debug, Clone)]
pub(crate) struct Function<'a> {
    pub(crate) address: u64,
    /// The size in bytes; 0 if the table does not have it.
    size: u64,
    pub(crate) name: &'a str,
    /// The other functions that start at the same address.
    pub(crate) others: Vec<&'a str>,
}

/// Returns the symbols of a kind, sorted by address, one for each address.
fn named<'a>(
    symbols: impl Iterator<Item = impl ObjectSymbol<'a>>,
    kind: SymbolKind,
) -> Vec<Function<'a>> {
    let defined = symbols.filter(|symbol| symbol.is_definition() && symbol.kind() == kind);
    let mut functions: Vec<Function<'_>> = defined
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some(Function {
                address: symbol.address(),
                size: symbol.size(),
                name,
                others: Vec::new(),
            })
        })
        .collect();
    functions.sort_unstable_by_key(|function| (function.address, function.name));
    functions.dedup_by(|again, first| {
        let same = again.address == first.address;
        if same {
            if again.name != first.name {
                first.others.push(again.name);
            }
            first.size = first.size.max(again.size);
        }
        same
    });
    functions
}

/// Returns the function that contains an address.
pub(crate) fn function_at<'a, 'b>(
    functions: &'b [Function<'a>],
    address: u64,
) -> Option<&'b Function<'a>> {
    let after = functions.partition_point(|function| function.address <= address);
    let function = functions.get(after.checked_sub(1)?)?;
    let inside = function.size == 0 || address - function.address < function.size;
    inside.then_some(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_after_its_size_or_before_the_next_one() {
        let function = |address, size, name| Function { address, size, name, others: Vec::new() };
        let functions =
            [function(0x10, 8, "sized"), function(0x20, 0, "open"), function(0x30, 4, "last")];
        for (address, expected) in [
            (0x0f, None),
            (0x10, Some("sized")),
            (0x17, Some("sized")),
            (0x18, None),
            (0x20, Some("open")),
            (0x2f, Some("open")),
            (0x33, Some("last")),
            (0x34, None),
        ] {
            let found = function_at(&functions, address).map(|function| function.name);
            assert_eq!(found, expected, "{address:x}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_with_its_own_debug_information_has_no_link_to_another_file() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(Elf::parse(&program).unwrap().debug_link(), None);
    }
}
