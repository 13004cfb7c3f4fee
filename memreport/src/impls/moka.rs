//! Measures caches of `moka` with shared values. *Lower bound*: keys and values are exact, but of
//! the cache itself only the blocks that the handle points to are counted.
//!
//! A cache returns clones of its values. A clone of a shared value is another owner of the same
//! block. A clone of any other value has blocks of its own, so caches of such values are not
//! measurable.

use core::hash::{BuildHasher, Hash};
use std::sync::Arc;

use moka::sync::Cache;

use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

impl<K, V, S> MallocSizeOf for Cache<K, Arc<V>, S>
where
    K: Hash + Eq + Send + Sync + MallocSizeOf + 'static,
    V: ?Sized + Send + Sync + MallocSizeOf + 'static,
    S: BuildHasher + Clone + Send + Sync + 'static,
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shared_blocks_by_words(words_of(self), (self, 0), usize::MAX);
        for (key, value) in self {
            ops.measure_borrowed(&key, Arc::add_size_of_excluding_this);
            ops.measure_borrowed(&value, Arc::add_size_of_excluding_this);
        }
    }
}
