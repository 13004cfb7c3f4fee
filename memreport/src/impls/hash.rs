//! Hash maps and sets, with any hasher. *Exact with the tracker*; without it a *formula*.
//!
//! What the hasher owns is not measured; that of std owns nothing.
//!
//! The formula is the size of hashbrown's table for the capacity. It falls short by what the allocator rounds up, and after
//! removals, which may leave a map with less capacity than its table was made for.

use std::collections::{HashMap, HashSet};

use super::table::{add_table, inside, table_size};
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<K, V, S> MallocShallowSizeOf for HashMap<K, V, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let entry = self.iter().next().map(|(key, value)| inside(key, value));
        add_table::<(K, V), Self>(ops, self, entry, table_size::<(K, V)>(self.capacity()));
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for HashMap<K, V, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        if K::owns_nothing() && V::owns_nothing() {
            return;
        }
        ops.add_with(self, |map, ops| {
            ops.each_ahead(map.iter(), |(key, value)| {
                key.add_size_of_excluding_this(ops);
                value.add_size_of_excluding_this(ops);
            });
        });
    }
}

impl<T, S> MallocShallowSizeOf for HashSet<T, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let entry = self.iter().next().map(|element| inside(element, &()));
        add_table::<T, Self>(ops, self, entry, table_size::<T>(self.capacity()));
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for HashSet<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        if T::owns_nothing() {
            return;
        }
        ops.add_with(self, |set, ops| {
            ops.each_ahead(set.iter(), |element| {
                element.add_size_of_excluding_this(ops);
            });
        });
    }
}
