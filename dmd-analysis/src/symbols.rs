//! Symbolicates dumps: looks up functions and lines for addresses, after the program has ended.
//!
//! A dump contains modules, their build ids, and addresses in them. The symboliser finds the
//! modules' files and compares the build ids. It reads debug information first, where inlined
//! functions become frames of their own, and the symbol table otherwise. If a file is missing, a
//! symbol file of Breakpad takes its place. Addresses without symbols become notes.

mod address;
mod frames;
mod module;
mod rewrite;
mod statics;
mod symbolicate;
mod symbol_cache;
pub(crate) mod types;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use rustc_hash::FxHashMap;

use crate::read::Dump;
pub(crate) use address::Address;
use module::Module;

pub use module::locate::ModuleError;
pub use module::members::{Layout, Member, Members};
pub use symbol_cache::SymbolCache;
pub use symbolicate::{SymbolicateError, symbolicate};
pub use types::Types;

/// The places to search for symbols.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The directories to search before the paths of the dump. They contain modules, `.build-id`
    /// directories or symbol files of Breakpad.
    pub search: Vec<PathBuf>,
    /// The number of threads, or `None` for the number of processors.
    pub threads: Option<usize>,
}

/// The result of symbolicating a dump.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of frames with an address.
    pub addresses: usize,
    /// The number of those that have a function now.
    pub found: usize,
    /// The reasons for missing symbols, and the problems with modules: a sentence each.
    pub notes: Vec<String>,
}

/// A symboliser, which keeps modules and symbols for further dumps of the same program.
#[derive(Debug, Default)]
pub struct Symboliser {
    options: Options,
    modules: HashMap<Key, Module>,
}

impl Symboliser {
    /// Returns a symboliser with these options.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, modules: HashMap::new() }
    }

    /// Replaces each frame with an address by the functions at that address.
    pub fn symbolicate(&mut self, dump: &mut Dump) -> Report {
        statics::name_statics(self, dump);
        frames::name_frames(self, dump);
        let addresses: Vec<_> =
            dump.frames.iter().map(|frame| Address::parse(&frame.text)).collect();
        let mut report =
            Report { addresses: addresses.iter().flatten().count(), ..Report::default() };
        if report.addresses == 0 {
            return report;
        }
        let mut wanted: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for address in addresses.iter().flatten() {
            wanted.entry(address.module).or_default().push(address.offset);
        }
        let threads = self.options.threads;
        for (path, offsets) in &mut wanted {
            offsets.sort_unstable();
            offsets.dedup();
            let module = self.module(dump, path);
            module.look_up(offsets, threads);
            report.notes.extend(module.note(offsets));
        }
        let modules: FxHashMap<&str, Option<&Module>> =
            wanted.keys().map(|&path| (path, self.modules.get(&Key::new(dump, path)))).collect();
        let symbols_at =
            |address: Address<'_>| (*modules.get(address.module)?)?.symbols(address.offset);
        let symbols: Vec<_> = addresses.into_iter().map(|address| symbols_at(address?)).collect();
        report.found = symbols.iter().flatten().count();
        if report.found == 0 {
            report.notes.insert(0, "no frame could be given a function:".to_owned());
        }
        rewrite::rewrite(dump, &symbols);
        report
    }

    /// Returns the fields of these types in the program that wrote `dump`. Types without debug
    /// information are left out.
    pub fn members(&mut self, dump: &Dump, types: &[String]) -> Members {
        if types.is_empty() {
            return Members::default();
        }
        let program = dump.extension.as_ref().and_then(|ours| ours.program.clone());
        let wanted = types.iter().map(|name| &**name).collect();
        program.map(|path| self.module(dump, &path).members(&wanted)).unwrap_or_default()
    }

    /// Frees the debug information of all modules. It is read again when it is needed.
    pub fn free_modules(&mut self) {
        self.modules.clear();
    }

    /// Returns the types of the program that wrote `dump`, and the variables that its threads had;
    /// none without debug information.
    pub fn types(&mut self, dump: &Dump) -> Types {
        let Some(ours) = &dump.extension else { return Types::default() };
        let Some(path) = &ours.program else { return Types::default() };
        self.module(dump, path).types(&ours.frames)
    }

    /// Returns the module at `path` of the program that wrote `dump`.
    fn module(&mut self, dump: &Dump, path: &str) -> &Module {
        // Addresses of Mozilla are relative to the mapped file, ours to the load bias.
        let from_bias = dump.extension.is_some();
        let options = &self.options;
        self.modules.entry(Key::new(dump, path)).or_insert_with_key(|key| {
            Module::find(&key.path, key.build_id.as_deref(), from_bias, options)
        })
    }
}

/// The key by which modules of two dumps are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    path: String,
    build_id: Option<String>,
}

impl Key {
    fn new(dump: &Dump, path: &str) -> Self {
        let mut modules = dump.extension.iter().flat_map(|extension| &extension.modules);
        let build_id =
            modules.find(|module| module.path == path).and_then(|module| module.build_id.clone());
        Self { path: path.to_owned(), build_id }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
