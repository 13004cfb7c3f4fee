//! Measures text interners of `lasso` for one thread. *Exact with the tracker*, as long as each
//! bucket has text in it; without it a *formula*.
//!
//! The formula is the buckets and the capacity, or the lengths for a reader and a resolver. A
//! bucket without text, such as an empty interner's, is not counted. The hasher is not measured.

use lasso::{Rodeo, RodeoReader, RodeoResolver};

use super::table::table_size;
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(lasso::Spur, lasso::MicroSpur, lasso::MiniSpur, lasso::LargeSpur);

/// Counts the blocks that an interner points to, and the blocks that contain its texts.
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
