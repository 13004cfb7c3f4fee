//! Interned text of `lasso`, in the hands of one thread. *Exact with the tracker*, as long as each bucket has text in it; without it
//! a *formula*: the buckets and what the capacity takes, or of a reader and a resolver, the lengths.
//!
//! A bucket that has no text, as that of an empty interner, is not seen, nor what the hasher owns.

use lasso::{Rodeo, RodeoReader, RodeoResolver};

use super::table::table_size;
use crate::allocator::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(lasso::Spur, lasso::MicroSpur, lasso::MiniSpur, lasso::LargeSpur);

/// Counts the blocks that an interner leads to, and those that the texts lie in.
fn add_blocks<'t, T>(
    ops: &Ops<'_>,
    interner: &T,
    texts: impl Iterator<Item = &'t str>,
    otherwise: usize,
) {
    let own = words_of(interner).map(core::ptr::without_provenance);
    let texts = texts.filter(|text| !text.is_empty()).map(str::as_ptr);
    ops.enclosing_blocks(own.chain(texts), otherwise);
}

fn lengths<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|text| size_of::<&str>() + text.len()).sum()
}

impl<K, S> MallocSizeOf for Rodeo<K, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let lists = self.capacity().saturating_mul(size_of::<&str>());
        let bytes = self.current_memory_usage() + lists + table_size::<K>(self.len());
        add_blocks(ops, self, self.strings(), bytes);
    }
}

impl<K, S> MallocSizeOf for RodeoReader<K, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = lengths(self.strings()) + table_size::<K>(self.len());
        add_blocks(ops, self, self.strings(), bytes);
    }
}

impl<K> MallocSizeOf for RodeoResolver<K> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_blocks(ops, self, self.strings(), lengths(self.strings()));
    }
}
