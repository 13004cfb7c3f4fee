//! Measures caches of `lru`. *Exact with the tracker*; without it a *formula*: an entry for each
//! element, and the table of the capacity.

use core::hash::{BuildHasher, Hash};

use lru::LruCache;

use super::table::{inside, is_table, table_size};
use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

/// A copy of the cache's entry.
#[expect(dead_code, reason = "only its size is of interest")]
struct Entry<K, V> {
    key: K,
    value: V,
    links: [usize; 2],
}

impl<K: Hash + Eq, V, S: BuildHasher> MallocShallowSizeOf for LruCache<K, V, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        add_frame(ops, self);
        for (key, value) in self {
            ops.enclosing_block(inside(key, value), size_of::<Entry<K, V>>());
        }
    }
}

impl<K, V, S> MallocSizeOf for LruCache<K, V, S>
where
    K: Hash + Eq + MallocSizeOf,
    V: MallocSizeOf,
    S: BuildHasher,
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_frame(ops, self);
        ops.add_with(self, |cache, ops| {
            for (key, value) in cache {
                ops.enclosing_block(inside(key, value), size_of::<Entry<K, V>>());
                key.add_size_of_excluding_this(ops);
                value.add_size_of_excluding_this(ops);
            }
        });
    }
}

/// Counts the table, and the two entries at the ends of the list.
fn add_frame<K: Hash + Eq, V, S: BuildHasher>(ops: &Ops<'_>, cache: &LruCache<K, V, S>) {
    // A cache without a limit grows its table on demand.
    let places = if cache.cap().get() == usize::MAX { cache.len() } else { cache.cap().get() };
    let bytes = table_size::<[usize; 2]>(places) + 2 * size_of::<Entry<K, V>>();
    let is_own = |offset, requested| {
        is_table::<[usize; 2]>(offset, requested)
            || (offset == 0 && requested == size_of::<Entry<K, V>>())
    };
    ops.blocks_by_words(words_of(cache), is_own, bytes);
}
