//! Measures maps and sets of `dashmap`, shard by shard. *Exact*, except for *busy* shards that
//! another thread holds for longer than the collection waits.
#![expect(unsafe_code, reason = "vouches for the block of the shards")]

use core::alloc::Layout;
use core::hash::{BuildHasher, Hash};

use dashmap::{DashMap, DashSet, SharedValue};
use hashbrown_0_14::raw::RawTable;

use crate::{MallocSizeOf, Ops};

impl<K, V, S> MallocSizeOf for DashMap<K, V, S>
where
    K: Eq + Hash + MallocSizeOf,
    V: MallocSizeOf,
    S: BuildHasher + Clone,
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_shards(ops, self.shards(), |shard| shard.try_read());
    }
}

impl<K, S> MallocSizeOf for DashSet<K, S>
where
    K: Eq + Hash + MallocSizeOf,
    S: BuildHasher + Clone,
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_shards(ops, self.shards(), |shard| shard.try_read());
    }
}

impl<T: MallocSizeOf> MallocSizeOf for SharedValue<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get().add_size_of_excluding_this(ops);
    }
}

/// Counts the shards, and measures the table of each shard that no thread writes to.
fn add_shards<'a, K, V, L, G>(ops: &Ops<'a>, shards: &'a [L], try_read: impl Fn(&'a L) -> Option<G>)
where
    RawTable<(K, V)>: MallocSizeOf,
    G: crate::measure::guard::Guard<Target = RawTable<(K, V)>> + 'a,
{
    // SAFETY: a map owns its shards as a boxed slice.
    unsafe { ops.block(shards.as_ptr(), Layout::for_value(shards)) };
    for shard in shards {
        match ops.wait_for_lock(|| try_read(shard)) {
            Some(table) => ops.measure_guarded(table),
            None => ops.busy(),
        }
    }
}
