//! Names the statics of a dump by their addresses.

use std::collections::{BTreeMap, HashMap};

use super::Symboliser;
use crate::read::{Dump, Extension, Holder, StaticPlace};

/// Names each static of the dump that its module's file contains.
pub(super) fn name_statics(symboliser: &mut Symboliser, dump: &mut Dump) {
    let mut wanted: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for place in dump.extension.iter_mut().flat_map(places) {
        wanted.entry(place.module.clone()).or_default().push(place.offset);
    }
    let mut names: HashMap<(String, u64), String> = HashMap::new();
    for (path, offsets) in wanted {
        let found = symboliser.module(dump, &path).statics(&offsets);
        let named = found.into_iter().zip(offsets);
        names.extend(named.filter_map(|(name, offset)| Some(((path.clone(), offset), name?))));
    }
    for place in dump.extension.iter_mut().flat_map(places) {
        if let Some(name) = names.get(&(place.module.clone(), place.offset)) {
            place.name = Some(name.clone());
        }
    }
}

/// Returns the statics without a name.
fn places(extension: &mut Extension) -> impl Iterator<Item = &mut StaticPlace> {
    let holders = extension.holders.values_mut().filter_map(|holder| match holder {
        Holder::Static(place) => Some(place),
        Holder::Skipped(_) => None,
    });
    let words = extension.statics.iter_mut().map(|word| &mut word.place);
    holders.chain(&mut extension.reported_statics).chain(words).filter(|place| place.name.is_none())
}
