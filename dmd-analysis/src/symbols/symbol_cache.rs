//! A cache of symbols without the files, small enough for a program that serves its own profiles.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::address::Address;
use super::module::{Module, Symbols};
use super::rewrite::rewrite;
use super::{Key, Options, Report};
use crate::read::Dump;

/// The symbols of addresses in earlier dumps. Files are only open while new addresses are looked
/// up.
#[derive(Debug, Default)]
pub struct SymbolCache {
    /// `None` for an address without symbols, so that it is not looked up again.
    modules: FxHashMap<(Key, u64), Option<Symbols>>,
}

impl SymbolCache {
    /// Replaces each frame with an address, in a dump of this process, by the functions at that
    /// address.
    ///
    /// Statics get no names.
    pub fn symbolicate(&mut self, dump: &mut Dump) -> Report {
        let addresses: Vec<_> =
            dump.frames.iter().map(|frame| Address::parse(&frame.text)).collect();
        let mut new: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let mut keys: FxHashMap<&str, Key> = FxHashMap::default();
        for Address { module, offset } in addresses.iter().flatten().copied() {
            let key = keys.entry(module).or_insert_with(|| Key::new(dump, module));
            if !self.modules.contains_key(&(key.clone(), offset)) {
                new.entry(module).or_default().push(offset);
            }
        }
        let mut report =
            Report { addresses: addresses.iter().flatten().count(), ..Report::default() };
        for (path, mut offsets) in new {
            offsets.sort_unstable();
            offsets.dedup();
            let key = &keys[path];
            let from_bias = dump.extension.is_some();
            let module =
                Module::find(path, key.build_id.as_deref(), from_bias, &Options::default());
            // Only on this thread: the tracker attributes the memory of other threads to the
            // program.
            module.look_up(&offsets, Some(1));
            report.notes.extend(module.note(&offsets));
            let found =
                offsets.iter().map(|&offset| ((key.clone(), offset), module.symbols(offset)));
            self.modules.extend(found);
        }
        let symbols_at = |address: Address<'_>| {
            let key = keys[address.module].clone();
            self.modules.get(&(key, address.offset))?.clone()
        };
        let symbols: Vec<_> = addresses.into_iter().map(|address| symbols_at(address?)).collect();
        report.found = symbols.iter().flatten().count();
        rewrite(dump, &symbols);
        report
    }
}
