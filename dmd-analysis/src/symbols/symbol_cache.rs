//! What was looked up, without the files that it was found in: little enough to keep in a program that serves its own profiles.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::address::Address;
use super::module::{Module, Symbols};
use super::rewrite::rewrite;
use super::{Key, Options, Report};
use crate::read::Dump;

/// The symbols of addresses that were met. Files are opened for new ones, and closed again.
#[derive(Debug, Default)]
pub struct Found {
    /// `None` where there are none, so that nobody looks again.
    modules: FxHashMap<(Key, u64), Option<Symbols>>,
}

impl Found {
    /// Replaces each frame of a dump of this process that holds an address by the functions at that address. Statics stay
    /// unnamed.
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
        let mut report = Report { asked: addresses.iter().flatten().count(), ..Report::default() };
        for (path, mut offsets) in new {
            offsets.sort_unstable();
            offsets.dedup();
            let key = &keys[path];
            let from_bias = dump.extension.is_some();
            let module =
                Module::find(path, key.build_id.as_deref(), from_bias, &Options::default());
            // On this thread alone: another one's memory would be taken for the program's.
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
