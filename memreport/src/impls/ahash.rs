//! Measures maps and hashers of `ahash`. *Exact*, like std's maps.

use ahash::{AHashMap, AHashSet, AHasher, RandomState};

use crate::{MallocSizeOf, Ops};

owns_nothing!(AHasher, RandomState);

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for AHashMap<K, V, S> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        (**self).add_size_of_excluding_this(ops);
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for AHashSet<T, S> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        (**self).add_size_of_excluding_this(ops);
    }
}
