//! Caches of `moka`, of shared values. *Lower bound*: keys and values to the byte, but of what the cache itself takes, only the
//! blocks that the handle leads to.
//!
//! A cache hands out clones of its values. A clone of what is shared is another owner of the same block; a clone of anything else
//! would have blocks of its own, so caches of such values cannot be measured.

use core::hash::{BuildHasher, Hash};
use std::sync::Arc;

use moka::sync::Cache;

use crate::allocator::words::words_of;
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
            ops.now(&key, Arc::add_size_of_excluding_this);
            ops.now(&value, Arc::add_size_of_excluding_this);
        }
    }
}
