//! Symbol files of Breakpad, for modules whose own file is missing: functions, inlined functions
//! and lines as text.
//!
//! Addresses are relative to the module's first byte in memory. The line record at an address
//! belongs to the innermost function; the record of an inlined function contains the line of its
//! call.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::file;
use super::locate::ModuleError;
use super::names::demangle;
use crate::read::Symbol;
use crate::symbols::Options;

/// A parsed symbol file.
#[derive(Debug, Default)]
pub(crate) struct SymbolFile {
    id: String,
    files: FxHashMap<u32, Arc<str>>,
    origins: FxHashMap<u32, Arc<str>>,
    /// Sorted by address.
    functions: Vec<Function>,
    /// Sorted by address.
    publics: Vec<Public>,
}

/// A public symbol, which has no size.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Public {
    address: u64,
    name: Arc<str>,
}

#[derive(Debug)]
struct Function {
    address: u64,
    size: u64,
    name: Arc<str>,
    lines: Vec<Line>,
    inlines: Vec<Inline>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    address: u64,
    size: u64,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    file: u32,
    line: u32,
}

#[derive(Debug)]
struct Inline {
    depth: u32,
    /// The place of the call.
    call: Place,
    origin: u32,
    ranges: Vec<Range<u64>>,
}

impl SymbolFile {
    /// Finds the symbol file of a module: `DIR/name/ID/name.sym`, or `DIR/name.sym`.
    pub(crate) fn find(
        path: &Path,
        build_id: Option<&str>,
        options: &Options,
    ) -> Option<Result<Self, ModuleError>> {
        let name = path.file_name()?.to_string_lossy();
        let id = build_id.and_then(debug_id);
        let file = format!("{name}.sym");
        let mut refusal = None;
        for directory in &options.search {
            let filed = id.as_ref().map(|id| directory.join(&*name).join(id).join(&file));
            for place in filed.into_iter().chain([directory.join(&file)]) {
                let Ok(bytes) = file::read(&place) else { continue };
                let found = Self::parse(&String::from_utf8_lossy(&bytes));
                match id.as_ref().filter(|id| !found.id.is_empty() && **id != found.id) {
                    None => return Some(Ok(found)),
                    Some(id) => {
                        let (found, wanted) = (found.id, id.clone());
                        refusal = Some(Err(ModuleError::OtherBuild { found, wanted }));
                    }
                }
            }
        }
        refusal
    }

    /// Parses a symbol file. Unknown lines are ignored, because the format may grow.
    pub(crate) fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            // Malformed lines are ignored as well.
            let _ = found.add(line);
        }
        found.functions.sort_by_key(|function| function.address);
        for function in &mut found.functions {
            function.lines.sort_by_key(|line| line.address);
            function.inlines.sort_by_key(|inline| inline.depth);
        }
        found.publics.sort();
        found
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "MODULE" => rest.split(' ').nth(2)?.clone_into(&mut self.id),
            "FILE" => {
                let (number, name) = rest.split_once(' ')?;
                self.files.insert(number.parse().ok()?, name.into());
            }
            "INLINE_ORIGIN" => {
                let (number, name) = rest.split_once(' ')?;
                self.origins.insert(number.parse().ok()?, readable(name));
            }
            "FUNC" => {
                let mut words = without_mark(rest).splitn(4, ' ');
                let (address, size) = (hex(words.next()?)?, hex(words.next()?)?);
                let name = readable(words.nth(1)?);
                let (lines, inlines) = (Vec::new(), Vec::new());
                self.functions.push(Function { address, size, name, lines, inlines });
            }
            "PUBLIC" => {
                let mut words = without_mark(rest).splitn(3, ' ');
                let address = hex(words.next()?)?;
                self.publics.push(Public { address, name: readable(words.nth(1)?) });
            }
            "INLINE" => {
                let inline = Inline::parse(rest)?;
                self.functions.last_mut()?.inlines.push(inline);
            }
            "INFO" | "STACK" => {}
            address => {
                let mut words = rest.split(' ');
                let (address, size) = (hex(address)?, hex(words.next()?)?);
                let (line, file) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let line = Line { address, size, place: Place { file, line } };
                self.functions.last_mut()?.lines.push(line);
            }
        }
        Some(())
    }

    /// Returns the functions at an address, innermost first.
    pub(crate) fn symbols(&self, address: u64) -> Vec<Symbol> {
        let after = self.functions.partition_point(|function| function.address <= address);
        let function = after.checked_sub(1).map(|at| &self.functions[at]);
        let Some(function) = function.filter(|function| address - function.address < function.size)
        else {
            return self.public(address);
        };
        let line = function.lines.iter().rfind(|line| line.address <= address);
        let mut place =
            line.filter(|line| address - line.address < line.size).map(|line| line.place);
        let mut symbols = Vec::new();
        for inline in function.inlines.iter().rev().filter(|inline| inline.has(address)) {
            let name = self.origins.get(&inline.origin);
            symbols.push(self.symbol(name.cloned().unwrap_or_else(|| "??".into()), place, true));
            place = Some(inline.call);
        }
        symbols.push(self.symbol(Arc::clone(&function.name), place, false));
        symbols
    }

    /// Returns the last public symbol at or before an address, since public symbols have no size.
    fn public(&self, address: u64) -> Vec<Symbol> {
        let after = self.publics.partition_point(|public| public.address <= address);
        let found = after.checked_sub(1).map(|at| Arc::clone(&self.publics[at].name));
        found.map(|name| self.symbol(name, None, false)).into_iter().collect()
    }

    fn symbol(&self, function: Arc<str>, place: Option<Place>, inlined: bool) -> Symbol {
        let file = place.and_then(|place| self.files.get(&place.file)).cloned();
        let line = place.map(|place| place.line).filter(|&line| line > 0);
        Symbol { function, name: None, file, line, inlined, folded: false, module: None }
    }
}

impl Inline {
    fn parse(rest: &str) -> Option<Self> {
        let mut words = rest.split(' ');
        let depth = words.next()?.parse().ok()?;
        let line = words.next()?.parse().ok()?;
        let file = words.next()?.parse().ok()?;
        let origin = words.next()?.parse().ok()?;
        let mut ranges = Vec::new();
        while let (Some(address), Some(size)) = (words.next(), words.next()) {
            let start = hex(address)?;
            ranges.push(start..start.saturating_add(hex(size)?));
        }
        Some(Self { depth, call: Place { file, line }, origin, ranges })
    }

    fn has(&self, address: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(&address))
    }
}

/// Returns the id of a module in Breakpad: the first sixteen bytes of its build id as a GUID, then
/// the age, which is 0.
pub(crate) fn debug_id(build_id: &str) -> Option<String> {
    let mut bytes = [0_u8; 16];
    for (at, byte) in bytes.iter_mut().enumerate().take(build_id.len() / 2) {
        *byte = u8::from_str_radix(build_id.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    // A GUID has little-endian numbers of four, two and two bytes, followed by eight bytes.
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    Some(digits + "0")
}

/// Removes the `m` before an address, which marks several functions at the address.
fn without_mark(rest: &str) -> &str {
    rest.strip_prefix("m ").unwrap_or(rest)
}

fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

fn readable(name: &str) -> Arc<str> {
    demangle(name).map_or_else(|| name.into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::{SymbolFile, debug_id};

    const TEXT: &str = "\
MODULE Linux x86_64 B6B5A4A3C2C1D2D1E1E2E3E4E5E6E7E80 subject
INFO CODE_ID A3A4B5B6
FILE 0 src/main.rs
FILE 1 src/lexicon.rs
INLINE_ORIGIN 0 subject::Lexicon::intern
INLINE_ORIGIN 1 _ZN4core4iter4next17h0123456789abcdefE
FUNC 1000 40 0 subject::main
INLINE 0 3 0 0 1010 20
INLINE 1 41 1 1 1018 8
1000 10 2 0
1010 30 42 1
FUNC m 2000 10 0 operator new(unsigned long)
PUBLIC 3000 0 memcpy
STACK CFI INIT 1000 40 .cfa: $rsp 8 +
nonsense
";

    #[test]
    fn functions_and_inlined_ones_are_found_with_their_lines() {
        let file = SymbolFile::parse(TEXT);
        let table: [(u64, &[&str]); 7] = [
            (0x1000, &["subject::main src/main.rs:2"]),
            (
                0x1010,
                &[
                    "subject::Lexicon::intern src/lexicon.rs:42 inlined",
                    "subject::main src/main.rs:3",
                ],
            ),
            (
                0x1018,
                &[
                    "core::iter::next src/lexicon.rs:42 inlined",
                    "subject::Lexicon::intern src/lexicon.rs:41 inlined",
                    "subject::main src/main.rs:3",
                ],
            ),
            (0x1030, &["subject::main src/lexicon.rs:42"]),
            (0x2004, &["operator new(unsigned long)"]),
            (0x3fff, &["memcpy"]),
            (0xfff, &[]),
        ];
        for (address, expected) in table {
            let shown = file.symbols(address).into_iter().map(|symbol| {
                let place = symbol.file.zip(symbol.line);
                let place = place.map_or(String::new(), |(file, line)| format!(" {file}:{line}"));
                format!(
                    "{}{place}{}",
                    symbol.function,
                    if symbol.inlined { " inlined" } else { "" }
                )
            });
            assert_eq!(shown.collect::<Vec<_>>(), expected, "{address:x}");
        }
    }

    #[test]
    fn a_build_id_becomes_a_guid() {
        let table = [
            ("a3a4b5b6c1c2d1d2e1e2e3e4e5e6e7e8f1f2f3f4", "B6B5A4A3C2C1D2D1E1E2E3E4E5E6E7E80"),
            ("0102", "000002010000000000000000000000000"),
        ];
        for (build_id, expected) in table {
            assert_eq!(debug_id(build_id).as_deref(), Some(expected));
        }
        assert_eq!(SymbolFile::parse(TEXT).id, table[0].1);
        assert_eq!(debug_id("zz"), None);
    }
}
