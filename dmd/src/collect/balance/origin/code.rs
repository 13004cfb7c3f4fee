//! The functions of reported crates and of Rust's libraries, by address.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use backtrace::SymbolName;
use memreport::__private::{LIBRARIES, as_own};

use super::super::symbols::{self, Function};
use crate::mem::pages::PageList;
use crate::mem::sys::{self, Module};

/// The code of a function: whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeKind {
    /// Code that allocates for its callers.
    Library,
    /// Code of a crate with a reporter, which has this number.
    Reported(u32),
    /// All other code.
    Other,
}

/// The functions of all loaded modules that are a library's or a reported crate's.
#[derive(Debug)]
pub(super) struct Code {
    /// Sorted by start. Functions do not overlap, but for those that share all of their code.
    functions: PageList<KnownFunction>,
    /// The modules that were read, and the crates.
    source: Source,
    /// The crates that no function belongs to, with the numbers of their reporters.
    unknown: Vec<(&'static str, u32)>,
}

/// The origin of a [`Code`]: it is the same as long as this is.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    modules: Vec<Module>,
    crates: Vec<(&'static str, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct KnownFunction {
    start: usize,
    end: usize,
    kind: CodeKind,
}

/// The last result. A program's modules seldom change.
static LAST: Mutex<Option<Arc<Code>>> = Mutex::new(None);

impl Code {
    /// Reads the symbols of all modules, or returns what was read before. `crates` are names with
    /// the numbers of their reporters.
    pub(super) fn read(crates: &[(&'static str, u32)]) -> Arc<Code> {
        as_own(|| {
            let source = Source { modules: sys::modules(), crates: crates.to_vec() };
            // A forked child may inherit a lock that no thread will release: it reads for itself.
            let Ok(mut last) = LAST.try_lock() else { return Arc::new(Code::of(source)) };
            match &*last {
                Some(code) if code.source == source => Arc::clone(code),
                _ => Arc::clone(last.insert(Arc::new(Code::of(source)))),
            }
        })
    }

    fn of(source: Source) -> Code {
        let mut functions = PageList::new();
        let mut is_known = vec![false; source.crates.len()];
        let mut crates = source.crates.clone();
        for module in &source.modules {
            let Ok(file) = symbols::file_of(module) else { continue };
            let add = |Function { start, size, name }: Function<'_>| {
                let kind = Name::of(name).kind(&crates, &mut is_known);
                let start = module.bias.wrapping_add(usize::try_from(start).unwrap_or(0));
                let end = start.saturating_add(usize::try_from(size).unwrap_or(0));
                if kind != CodeKind::Other && end > start {
                    functions.push(KnownFunction { start, end, kind });
                }
            };
            // A file that cannot be read has no functions: its code is other code.
            let _ = symbols::each_function(&file, module.build_id.as_deref(), add);
        }
        functions.as_mut_slice().sort_unstable_by_key(|function| function.start);
        let mut known = is_known.into_iter();
        crates.retain(|_| !known.next().unwrap_or(true));
        Code { functions, source, unknown: crates }
    }

    /// Returns whose code a return address is in.
    pub(super) fn kind_of(&self, return_address: usize) -> CodeKind {
        let call = return_address.wrapping_sub(1);
        let functions = self.functions.as_slice();
        let after = functions.partition_point(|function| function.start <= call);
        let before = after.checked_sub(1).and_then(|index| functions.get(index));
        before.filter(|function| call < function.end).map_or(CodeKind::Other, |known| known.kind)
    }

    /// Returns the crates without a function.
    pub(super) fn unknown(&self) -> &[(&'static str, u32)] {
        &self.unknown
    }
}

/// The most bytes of a demangled name that are looked at.
const MAX_NAME: usize = 512;

/// A demangled name, cut off behind its beginning.
struct Name {
    bytes: [u8; MAX_NAME],
    length: usize,
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let fitting = text.len().min(room.len());
        room[..fitting].copy_from_slice(&text.as_bytes()[..fitting]);
        self.length += fitting;
        if fitting == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

impl Name {
    fn of(mangled: &[u8]) -> Self {
        let mut name = Name { bytes: [0; MAX_NAME], length: 0 };
        // The end of a long name is not needed.
        let _ = write!(name, "{:#}", SymbolName::new(mangled));
        name
    }

    fn text(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }

    /// Returns whose function has this name, and notes the crates that have one.
    fn kind(&self, crates: &[(&str, u32)], is_known: &mut [bool]) -> CodeKind {
        let name = self.text();
        if allocates_for_callers(name) {
            return CodeKind::Library;
        }
        let Some(krate) = crate_of(name) else { return CodeKind::Other };
        if LIBRARIES.contains(&krate) {
            return CodeKind::Library;
        }
        let found = crates.iter().position(|(wanted, _)| is_same_crate(wanted, krate));
        let Some(index) = found else { return CodeKind::Other };
        if let Some(is_known) = is_known.get_mut(index) {
            *is_known = true;
        }
        CodeKind::Reported(crates[index].1)
    }
}

/// Returns whether these are the same crate: the name of a package may have a `-` for each `_`.
fn is_same_crate(wanted: &str, krate: &str) -> bool {
    let written = |byte: u8| if byte == b'-' { b'_' } else { byte };
    wanted.bytes().map(written).eq(krate.bytes())
}

/// Returns whether a function is an allocator's, or the entry into one.
fn allocates_for_callers(name: &str) -> bool {
    const BEGINNINGS: [&str; 17] = [
        "__rust_alloc",
        "__rust_realloc",
        "__rustc::",
        "__rdl_",
        "__rg_",
        "malloc",
        "calloc",
        "realloc",
        "memalign",
        "posix_memalign",
        "aligned_alloc",
        "operator new",
        // The C++ library, as far as its templates are compiled into a program.
        "_ZNSt",
        "_ZNKSt",
        "_ZSt",
        "_ZN9__gnu_cxx",
        "_ZNK9__gnu_cxx",
    ];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.contains("GlobalAlloc>::")
}

/// Returns the crate at the beginning of a function's path. Of `<T as shop::Trait>::f`, where any
/// type may be `T`, that is the crate of the trait.
fn crate_of(name: &str) -> Option<&str> {
    let first = |path: &str| {
        let path = path.trim_start_matches(['<', '&', '*', '[', '(']);
        let path = path.strip_prefix("mut ").or_else(|| path.strip_prefix("dyn ")).unwrap_or(path);
        let end = path.find("::")?;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        path[..end].bytes().all(is_word).then_some(end).map(|end| (path.len(), end))
    };
    let cut = |text: &'_ str| {
        first(text).map(|(length, end)| text.len() - length..text.len() - length + end)
    };
    if let Some(range) = cut(name) {
        return name.get(range);
    }
    let (_, behind) = name.split_once(" as ")?;
    behind.get(cut(behind)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_belongs_to_the_crate_of_its_path() {
        use CodeKind::{Library, Other, Reported};
        let crates = [("shop", 0), ("regex-automata", 1), ("regex_syntax", 1)];
        for (name, expected) in [
            ("shop::till::open", Reported(0)),
            ("<shop::till::Till as core::clone::Clone>::clone", Reported(0)),
            ("<&mut shop::Till as core::fmt::Debug>::fmt", Reported(0)),
            ("<[shop::Coin] as alloc::borrow::ToOwned>::to_owned", Reported(0)),
            ("regex_automata::meta::Regex::new", Reported(1)),
            ("<regex_syntax::Parser>::parse", Reported(1)),
            ("<T as shop::Sell>::sell", Reported(0)),
            ("<(A, B) as shop::Sell>::sell", Reported(0)),
            ("alloc::vec::Vec<shop::Coin>::push", Library),
            ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", Library),
            ("hashbrown::raw::RawTable<T,A>::reserve_rehash", Library),
            ("<T as alloc::string::ToString>::to_string", Library),
            ("__rust_alloc", Library),
            ("__rustc::__rust_realloc", Library),
            ("<shop::Pool as core::alloc::global::GlobalAlloc>::alloc", Library),
            ("malloc", Library),
            ("_ZNSt15__new_allocatorIcE8allocateEmPKv", Library),
            ("_ZN7rocksdb2DB4OpenERKNS_7OptionsE", Other),
            ("shopping::open", Other),
            ("shop", Other),
            ("main", Other),
            ("", Other),
            ("sqlite3_open", Other),
            ("<é::x as y>::f", Other),
        ] {
            let mut is_known = [false; 3];
            let found = Name::of(name.as_bytes()).kind(&crates, &mut is_known);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn names_of_either_mangling_are_read() {
        for mangled in ["_ZN4shop4till4open17h0123456789abcdefE", "_RNvNtCsabc_4shop4till4open"] {
            let mut is_known = [false];
            let kind = Name::of(mangled.as_bytes()).kind(&[("shop", 7)], &mut is_known);
            assert_eq!((kind, is_known), (CodeKind::Reported(7), [true]), "{mangled}");
        }
        // A name that does not fit is cut off, and never inside of a letter.
        let long = format!("shop::{}", "é".repeat(MAX_NAME));
        assert!(Name::of(long.as_bytes()).text().starts_with("shop::é"));
    }

    #[test]
    fn the_code_of_this_program_is_found_once() {
        let crates = [("dmd", 3), ("no-such-crate", 4)];
        let code = Code::read(&crates);
        assert_eq!(code.unknown(), [("no-such-crate", 4)]);
        let own = Code::read as fn(&[(&'static str, u32)]) -> Arc<Code> as usize;
        assert_eq!(code.kind_of(own + 1), CodeKind::Reported(3));
        assert_eq!(code.kind_of(1), CodeKind::Other);
        assert!(Arc::ptr_eq(&code, &Code::read(&crates)), "the modules are the same");
        assert!(!Arc::ptr_eq(&code, &Code::read(&[("dmd", 5)])));
    }
}
