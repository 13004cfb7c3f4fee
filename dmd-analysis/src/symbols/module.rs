//! One module of a dump: looks up the symbols of its addresses with several threads, each in a part
//! of the module.

pub(crate) mod file;
pub(crate) mod breakpad;
pub(crate) mod dwarf;
pub(crate) mod elf;
pub(crate) mod locate;
pub(crate) mod members;
pub(crate) mod merged;
pub(crate) mod names;
pub(crate) mod types;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::Options;
use super::module::breakpad::SymbolFile;
use super::module::dwarf::{Lookup, Sources};
use super::module::elf::{Elf, function_at};
use super::module::locate::{Files, ModuleError};
use super::module::members::{Members, members};
use super::module::names::{NameCache, demangle};
use super::types::Types;
use crate::read::{StackFrame, Symbol};

/// The number of addresses per thread: with fewer, the start-up cost of a thread exceeds its
/// benefit.
const MIN_PER_THREAD: usize = 2_000;

/// The symbols at an address, innermost function first.
pub(super) type Symbols = Arc<[Symbol]>;

/// A module, with a cache of its symbols.
#[derive(Debug)]
pub(super) struct Module {
    path: String,
    files: Result<Files, ModuleError>,
    /// The symbol file of Breakpad, if the module's own file is missing.
    symbol_file: Option<SymbolFile>,
    from_bias: bool,
    /// By offset; empty for an offset without symbols.
    cache: DashMap<u64, Symbols, FxBuildHasher>,
}

impl Module {
    /// Finds the files of a module.
    pub(super) fn find(
        path: &str,
        build_id: Option<&str>,
        from_bias: bool,
        options: &Options,
    ) -> Self {
        let mut files = Files::find(Path::new(path), build_id, options);
        let mut symbol_file = None;
        if files.is_err() {
            match SymbolFile::find(Path::new(path), build_id, options) {
                Some(Ok(found)) => symbol_file = Some(found),
                Some(Err(refusal)) => files = Err(refusal),
                None => {}
            }
        }
        Self { path: path.to_owned(), files, symbol_file, from_bias, cache: DashMap::default() }
    }

    /// Looks up the sorted `offsets` that are not in the cache.
    pub(super) fn look_up(&self, offsets: &[u64], threads: Option<usize>) {
        if let Some(symbols) = &self.symbol_file {
            for &offset in offsets {
                self.cache.insert(offset, symbols.symbols(offset.saturating_sub(1)).into());
            }
        }
        let Ok(files) = &self.files else { return };
        let new: Vec<u64> =
            offsets.iter().copied().filter(|offset| !self.cache.contains_key(offset)).collect();
        let Ok(sources) = Sources::open(files) else { return };
        if new.is_empty() {
            return;
        }
        let names = NameCache::default();
        let threads =
            threads.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
        let threads = threads.min(new.len().div_ceil(MIN_PER_THREAD)).max(1);
        let bias = if self.from_bias { 0 } else { sources.first_address() };
        let part = |offsets: &[u64]| {
            let arena = typed_arena::Arena::new();
            let mut lookup = Lookup::new(&sources, &names, &arena);
            for &offset in offsets {
                // The call is before the return address, which may already be in another function.
                let symbols = lookup.symbols(offset.wrapping_add(bias).saturating_sub(1));
                self.cache.insert(offset, symbols.into());
            }
        };
        // Neighbouring addresses stay in one part, because they share parsed debug information.
        let mut parts = new.chunks(new.len().div_ceil(threads));
        let first = parts.next().unwrap_or_default();
        thread::scope(|scope| {
            for offsets in parts {
                scope.spawn(move || part(offsets));
            }
            part(first);
        });
    }

    /// Returns the symbols at an offset, or `None` if there are none.
    pub(super) fn symbols(&self, offset: u64) -> Option<Symbols> {
        self.cache
            .get(&offset)
            .map(|symbols| Arc::clone(&symbols))
            .filter(|symbols| !symbols.is_empty())
    }

    /// Returns the fields of types.
    pub(super) fn members(&self, wanted: &HashSet<&str>) -> Members {
        self.files.as_ref().map(|files| members(files, wanted)).unwrap_or_default()
    }

    /// Returns the types of the module, and the variables of those frames that are in its code.
    pub(super) fn types(&self, frames: &[StackFrame]) -> Types {
        self.files.as_ref().map(|files| types::types(files, &self.path, frames)).unwrap_or_default()
    }

    /// Returns the names of the statics at these offsets, in their order.
    pub(super) fn statics(&self, offsets: &[u64]) -> Vec<Option<String>> {
        let Ok(files) = &self.files else { return vec![None; offsets.len()] };
        let elf = Elf::parse(files.debug.as_ref().unwrap_or(&files.main));
        let statics = elf.as_ref().map(Elf::statics).unwrap_or_default();
        let name = |&offset: &u64| {
            let name = function_at(&statics, offset)?.name;
            Some(demangle(name).unwrap_or_else(|| name.to_owned()))
        };
        offsets.iter().map(name).collect()
    }

    /// Returns the problem with the module as a sentence, or `None` if it has full debug
    /// information.
    pub(super) fn note(&self, offsets: &[u64]) -> Option<String> {
        let path = &self.path;
        let count = offsets.len();
        let stay = match count {
            1 => "1 of its addresses stays as it is".to_owned(),
            _ => format!("{count} of its addresses stay as they are"),
        };
        let files = match &self.files {
            Ok(files) => files,
            Err(_) if self.symbol_file.is_some() => return None,
            Err(reason) => {
                return Some(format!("{path} {reason}; {stay}"));
            }
        };
        let has_lines = match files.has_lines() {
            Ok(has_lines) => has_lines,
            Err(reason) => {
                return Some(format!("{path} cannot be used ({reason}); {stay}"));
            }
        };
        if has_lines {
            return None;
        }
        let found = offsets.iter().filter(|&&offset| self.symbols(offset).is_some()).count();
        Some(match found {
            0 => format!(
                "{path} has neither debug information nor symbols for its {count} addresses: \
                 keep an unstripped copy and name its directory with --symbols"
            ),
            _ => format!(
                "{path} has no debug information: functions without lines and without inlined ones; \
                 build it with debug = \"line-tables-only\" in its profile"
            ),
        })
    }
}
