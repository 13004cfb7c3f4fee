//! Measures text interners of `string-interner`. *Exact with the tracker*, except for a last bucket
//! of `BucketBackend` without text; without it a *formula*.
//!
//! The formula is the lengths, an index for each text, and the table. The hasher is not measured.

use core::hash::BuildHasher;

use string_interner::backend::Backend;
use string_interner::{StringInterner, Symbol};

use super::table::table_size;
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(
    string_interner::symbol::SymbolU16,
    string_interner::symbol::SymbolU32,
    string_interner::symbol::SymbolUsize
);

impl<B: Backend<Symbol: Symbol>, H: BuildHasher> MallocSizeOf for StringInterner<B, H> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let own = words_of(self).map(core::ptr::without_provenance);
        let texts = || self.iter().map(|(_, text)| text).filter(|text| !text.is_empty());
        let lengths: usize = texts().map(|text| size_of::<usize>() + text.len()).sum();
        let bytes = lengths + table_size::<B::Symbol>(self.len());
        ops.enclosing_blocks(own.chain(texts().map(str::as_ptr)), bytes);
    }
}
