//! Functions and lines for the addresses of a dump, looked up after the program has gone.
//!
//! A dump names modules, their build ids, and addresses within them. Here the modules' files are found, checked to be the
//! very files that ran, and asked: debug information first (inlined functions become frames of their own), the symbol table
//! otherwise, and where a file is not there, the symbol file that Breakpad made of it. What could not be found out is said in words.

mod address;
mod module;
mod rewrite;
mod statics;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use rustc_hash::FxHashMap;

use crate::read::Dump;
pub(crate) use address::Address;
use module::Module;

pub use crate::symbols::module::locate::NotFound;
pub use crate::symbols::module::members::Members;
pub use crate::symbols::symbol_cache::Found;
pub use symbolicate::symbolicate;

/// Where symbols are looked for.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Directories with the modules' files, with `.build-id` directories or with Breakpad's symbol files, that come before the
    /// places named in the dump.
    pub search: Vec<PathBuf>,
    /// Threads to use; as many as there are processors if not given.
    pub threads: Option<usize>,
}

/// What became of a dump's frames.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Frames that held an address.
    pub asked: usize,
    /// How many of them have a function now.
    pub found: usize,
    /// Why the others have none, and what is wrong with the modules: a sentence each.
    pub notes: Vec<String>,
}

/// Looks up the addresses of dumps and remembers what it found, so that a second dump of the same program costs little.
#[derive(Debug, Default)]
pub struct Symboliser {
    options: Options,
    modules: HashMap<Key, Module>,
}

impl Symboliser {
    /// A symboliser that looks where `options` says.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, modules: HashMap::new() }
    }

    /// Replaces each frame that holds an address by the functions at that address.
    pub fn symbolicate(&mut self, dump: &mut Dump) -> Report {
        statics::name_statics(self, dump);
        let addresses: Vec<_> =
            dump.frames.iter().map(|frame| Address::parse(&frame.text)).collect();
        let mut report = Report { asked: addresses.iter().flatten().count(), ..Report::default() };
        if report.asked == 0 {
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

    /// Where the fields of these types are, in the program that wrote `dump`. Types without debug information are left out.
    pub fn members(&mut self, dump: &Dump, types: &[String]) -> Members {
        let program = dump.extension.as_ref().and_then(|ours| ours.program.clone());
        let wanted = types.iter().map(|name| &**name).collect();
        program
            .map(|path| self.module(dump, &path).members(&wanted))
            .filter(|_| !types.is_empty())
            .unwrap_or_default()
    }

    /// The module at `path` of the program that wrote `dump`.
    fn module(&mut self, dump: &Dump, path: &str) -> &Module {
        // Mozilla counts from where the file is mapped, we from the load bias.
        let from_bias = dump.extension.is_some();
        let options = &self.options;
        self.modules.entry(Key::new(dump, path)).or_insert_with_key(|key| {
            Module::find(&key.path, key.build_id.as_deref(), from_bias, options)
        })
    }
}

/// What makes two modules of two dumps the same.
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

#[cfg(test)]
mod tests;
mod symbolicate;
pub(crate) mod symbol_cache;
