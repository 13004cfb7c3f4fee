//! Measures values of `simd-json`: owned, borrowed and tapes. *Exact with the tracker*; without it
//! a *formula* for objects: the entries, or the table of the capacity.

use simd_json::StaticNode;
use simd_json::value::{borrowed, owned, tape};

use super::table::{inside, is_table, table_size};
use crate::tracker::words::words_outside;
use crate::{MallocSizeOf, Ops};

owns_nothing!(StaticNode);

/// Implements the trait for values. Objects and arrays own their boxes.
macro_rules! values {
    ($(<$($lifetime:lifetime)?> $module:ident),* $(,)?) => {$(
        impl $(<$lifetime>)? MallocSizeOf for $module::Value $(<$lifetime>)? {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                match self {
                    $module::Value::Static(_) => {}
                    $module::Value::String(text) => text.add_size_of_excluding_this(ops),
                    $module::Value::Array(values) => values.add_size_of_excluding_this(ops),
                    $module::Value::Object(object) => object.add_size_of_excluding_this(ops),
                }
            }
        }
    )*};
}

values!(<> owned, <'v> borrowed);

/// Counts the storage of an object's entries: a list for few, a table for many.
fn add_storage<K, V>(
    ops: &Ops<'_>,
    words: impl Iterator<Item = usize> + Clone,
    first: Option<(&K, &V)>,
    (is_list, capacity): (bool, usize),
) {
    let table = table_size::<(K, V)>(capacity);
    let bytes = if is_list { capacity.saturating_mul(size_of::<(K, V)>()) } else { table };
    let is_own = |offset, requested| offset == 0 || is_table::<(K, V)>(offset, requested);
    match first {
        Some((key, value)) => ops.enclosing_block(inside(key, value), bytes),
        None => ops.blocks_by_words(words, is_own, bytes),
    }
}

macro_rules! objects {
    ($(<$($lifetime:lifetime)?> $module:ident),* $(,)?) => {$(
        impl $(<$lifetime>)? MallocSizeOf for $module::Object $(<$lifetime>)? {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                let words = words_outside(self, self.hasher());
                add_storage(ops, words, self.iter().next(), (self.is_vec(), self.capacity()));
                ops.add_with(self, |object, ops| object.iter().for_each(|(key, value)| {
                    key.add_size_of_excluding_this(ops);
                    value.add_size_of_excluding_this(ops);
                }));
            }
        }
    )*};
}

objects!(<> owned, <'v> borrowed);

/// The texts are borrowed.
impl MallocSizeOf for tape::Tape<'_> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(&self.0);
    }
}
