//! Functions by the symbol table of a module's file. The rest of the file is not read: debug
//! information, which other look-ups parse, may be larger than the program's heap.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use crate::mem::sys::{self, Module};

/// The kinds of sections, and the kind of a symbol, by the ELF specification.
const SYMBOLS: u32 = 2;
const NOTES: u32 = 7;
const DYNAMIC_SYMBOLS: u32 = 11;
const FUNCTION: u8 = 2;

/// The bytes of a section header and of a symbol, in files of 64 bits.
const HEADER: usize = 64;
const SYMBOL: usize = 24;

/// The most sections, and the longest name, that are read.
const MAX_SECTIONS: u64 = 10_000;
const MAX_NAME: u64 = 4096;

/// The most bytes of names that are read at once.
const MAX_NAMES: u64 = 1 << 30;

/// A part of the file.
#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    /// The number of the section with the names of the symbols.
    names: u32,
}

/// Opens the file of a module.
pub(super) fn file_of(module: &Module) -> io::Result<File> {
    // The name of the program's file may be another one's by now.
    if module.is_program { sys::open_program() } else { File::open(&module.path) }
}

/// Returns the names of functions by their first addresses in the file, as far as the file has
/// symbols, and its build id is this one, if both have one.
pub(super) fn names(
    file: &File,
    build_id: Option<&str>,
    functions: &[u64],
) -> io::Result<BTreeMap<u64, String>> {
    let mut reader = BufReader::new(file);
    let Some(Table { symbols, texts }) = table(&mut reader, build_id)? else {
        return Ok(BTreeMap::new());
    };
    let mut found = BTreeMap::new();
    each_symbol(&mut reader, symbols, |symbol| {
        // Of several symbols at one address the first counts.
        if functions.binary_search(&symbol.start).is_ok() {
            found.entry(symbol.start).or_insert(symbol.name);
        }
    })?;
    let name =
        |(function, name): (u64, u32)| Ok((function, text(&mut reader, texts, u64::from(name))?));
    found.into_iter().map(name).collect()
}

/// A function of a module's file.
pub(super) struct Function<'t> {
    /// The first address in the file.
    pub(super) start: u64,
    /// The bytes of code.
    pub(super) size: u64,
    /// The name, as the compiler has mangled it.
    pub(super) name: &'t [u8],
}

/// Calls `visit` with each function, as far as the file has symbols, and its build id is this one,
/// if both have one.
pub(super) fn each_function(
    file: &File,
    build_id: Option<&str>,
    mut visit: impl FnMut(Function<'_>),
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let Some(Table { symbols, texts }) = table(&mut reader, build_id)? else { return Ok(()) };
    let mut names = Vec::new();
    reader.seek(SeekFrom::Start(texts.offset))?;
    reader.by_ref().take(texts.size.min(MAX_NAMES)).read_to_end(&mut names)?;
    each_symbol(&mut reader, symbols, |Symbol { start, size, name }| {
        let rest = names.get(name as usize..).unwrap_or(&[]);
        let name = rest.split(|byte| *byte == 0).next().unwrap_or(&[]);
        visit(Function { start, size, name });
    })
}

/// The symbols of a file, and their names.
struct Table {
    symbols: Section,
    texts: Section,
}

/// Returns the table of symbols, if the file has one, and its build id is this one.
fn table(reader: &mut (impl Read + Seek), build_id: Option<&str>) -> io::Result<Option<Table>> {
    let sections = sections(reader)?;
    if !is_same_build(reader, &sections, build_id)? {
        return Ok(None);
    }
    let of_kind = |kind| sections.iter().find(|section| section.kind == kind);
    let symbols = of_kind(SYMBOLS).or_else(|| of_kind(DYNAMIC_SYMBOLS));
    Ok(symbols.and_then(|symbols| {
        let texts = sections.get(symbols.names as usize)?;
        Some(Table { symbols: *symbols, texts: *texts })
    }))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(part) = bytes.get(at..at + N) {
        word[..N].copy_from_slice(part);
    }
    u64::from_le_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::try_from(number::<4>(bytes, at)).unwrap_or(0)
}

fn sections(reader: &mut (impl Read + Seek)) -> io::Result<Vec<Section>> {
    let mut head = [0; 64];
    reader.seek(SeekFrom::Start(0))?;
    reader.read_exact(&mut head)?;
    // 64 bits, little-endian.
    if !head.starts_with(b"\x7fELF\x02\x01") || number::<2>(&head, 58) != HEADER as u64 {
        return Ok(Vec::new());
    }
    let (offset, count) = (number::<8>(&head, 40), number::<2>(&head, 60).min(MAX_SECTIONS));
    reader.seek(SeekFrom::Start(offset))?;
    let mut header = [0; HEADER];
    let section = |_| {
        reader.read_exact(&mut header)?;
        Ok(Section {
            kind: half(&header, 4),
            offset: number::<8>(&header, 24),
            size: number::<8>(&header, 32),
            names: half(&header, 40),
        })
    };
    (0..count).map(section).collect()
}

/// Returns whether the file has this build id. True if one of them is not known.
fn is_same_build(
    reader: &mut (impl Read + Seek),
    sections: &[Section],
    build_id: Option<&str>,
) -> io::Result<bool> {
    let Some(wanted) = build_id else { return Ok(true) };
    for section in sections.iter().filter(|section| section.kind == NOTES) {
        let mut notes = Vec::new();
        reader.seek(SeekFrom::Start(section.offset))?;
        reader.by_ref().take(section.size.min(1 << 16)).read_to_end(&mut notes)?;
        if let Some(id) = sys::build_id(&notes) {
            return Ok(id.iter().map(|byte| format!("{byte:02x}")).eq(chunks_of_two(wanted)));
        }
    }
    Ok(true)
}

fn chunks_of_two(text: &str) -> impl Iterator<Item = String> {
    text.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned())
}

/// The symbol of a function, and the place of its name.
struct Symbol {
    start: u64,
    size: u64,
    name: u32,
}

fn each_symbol(
    reader: &mut (impl Read + Seek),
    table: Section,
    mut visit: impl FnMut(Symbol),
) -> io::Result<()> {
    reader.seek(SeekFrom::Start(table.offset))?;
    let mut symbol = [0; SYMBOL];
    for _ in 0..table.size / SYMBOL as u64 {
        reader.read_exact(&mut symbol)?;
        if symbol[4] & 0xf == FUNCTION {
            let (start, size) = (number::<8>(&symbol, 8), number::<8>(&symbol, 16));
            visit(Symbol { start, size, name: half(&symbol, 0) });
        }
    }
    Ok(())
}

fn text(reader: &mut (impl Read + Seek), texts: Section, at: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.seek(SeekFrom::Start(texts.offset.saturating_add(at)))?;
    let rest = texts.size.saturating_sub(at).min(MAX_NAME);
    reader.by_ref().take(rest).read_to_end(&mut bytes)?;
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let readable = format!("{:#}", backtrace::SymbolName::new(name));
    #[cfg(feature = "cpp")]
    if readable.starts_with("_Z")
        && let Some(readable) = of_cpp(name)
    {
        return Ok(readable);
    }
    Ok(readable)
}

/// Returns the name of a C++ function with its path and template arguments, without parameters.
#[cfg(feature = "cpp")]
fn of_cpp(name: &[u8]) -> Option<String> {
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(name).ok()?.demangle_with_options(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn known_function() -> usize {
        std::hint::black_box(17)
    }

    #[test]
    fn a_function_has_its_name_in_its_own_build_alone() {
        let address = known_function as *const () as usize;
        let modules = sys::modules();
        let own = modules
            .iter()
            .find(|module| {
                module.segments.iter().any(|&(low, high)| (low..high).contains(&address))
            })
            .expect("it is loaded");
        let in_file = (address - own.bias) as u64;
        let file = sys::open_program().expect("this program");
        let with = |build_id: Option<&str>| names(&file, build_id, &[in_file]).expect("it is ELF");
        assert!(with(None)[&in_file].ends_with("known_function"), "{:?}", with(None));
        assert_eq!(with(own.build_id.as_deref()), with(None));
        assert_eq!(with(Some("00ff")), BTreeMap::new());
        assert_eq!(names(&file, None, &[in_file + 1]).expect("it is ELF"), BTreeMap::new());
        assert_eq!(known_function(), 17);
    }

    #[test]
    fn other_files_have_no_names() {
        let file = |path: &str| names(&File::open(path).expect("it is there"), None, &[1]);
        let text = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert_eq!(file(text).expect("long enough"), BTreeMap::new());
        assert!(file("/dev/null").is_err());
    }
}
