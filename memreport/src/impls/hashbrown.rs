//! Maps, sets and tables of `hashbrown`, with any hasher. *Exact with the tracker*; without it a
//! *formula*, as for std's.

use super::table::{add_table, inside, table_size};
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

/// The same for each version.
macro_rules! tables_of {
    ($hashbrown:ident) => {
        impl<K, V, S> MallocShallowSizeOf for $hashbrown::HashMap<K, V, S> {
            fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
                let entry = self.iter().next().map(|(key, value)| inside(key, value));
                add_table::<(K, V), Self>(ops, self, entry, table_size::<(K, V)>(self.capacity()));
            }
        }

        impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for $hashbrown::HashMap<K, V, S> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                ops.shallow(self);
                ops.add_with(self, |map, ops| {
                    ops.each_ahead(map.iter(), |(key, value)| {
                        key.add_size_of_excluding_this(ops);
                        value.add_size_of_excluding_this(ops);
                    });
                });
            }
        }

        elements_of!($hashbrown::HashSet<T, S>, T, S);
        elements_of!($hashbrown::HashTable<T>, T);
    };
}

macro_rules! elements_of {
    ($table:ty, $element:ident $(, $hasher:ident)?) => {
        impl<$element $(, $hasher)?> MallocShallowSizeOf for $table {
            fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
                let entry = self.iter().next().map(|element| inside(element, &()));
                add_table::<$element, Self>(ops, self, entry, table_size::<$element>(self.capacity()));
            }
        }

        impl<$element: MallocSizeOf $(, $hasher)?> MallocSizeOf for $table {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                ops.shallow(self);
                ops.add_with(self, |table, ops| {
                    ops.each_ahead(table.iter(), |element| {
                        element.add_size_of_excluding_this(ops);
                    });
                });
            }
        }
    };
}

#[cfg(feature = "hashbrown")]
tables_of!(hashbrown);
#[cfg(feature = "hashbrown-0_15")]
tables_of!(hashbrown_0_15);
