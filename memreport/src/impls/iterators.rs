//! Measures iterators, owning and borrowing. Those over arrays and a vector's drain are *exact*.
//!
//! The others do not expose their remaining elements: *lower bounds*, with the tracker alone, of
//! the blocks that they point to. If the elements own nothing, those over double-ended queues,
//! heaps and hash tables are *exact with the tracker*.

use alloc::collections::{binary_heap, btree_map, btree_set, linked_list, vec_deque};
use alloc::{string, vec};
#[cfg(feature = "std")]
use std::collections::{hash_map, hash_set};

use super::sequence::words_before_end;
use super::{btree, list};
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

impl<T: MallocSizeOf, const N: usize> MallocSizeOf for core::array::IntoIter<T, N> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(self.as_slice());
    }
}

/// The vector owns the block, and is borrowed.
impl<T: MallocSizeOf> MallocSizeOf for vec::Drain<'_, T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(self.as_slice());
    }
}

/// The remaining elements are not measured.
impl<T> MallocSizeOf for binary_heap::IntoIter<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if self.len() > 0 {
            let words = words_before_end::<T>(&words_of(self), self.len());
            let is_buffer = |_, requested| requested % size_of::<T>().max(1) == 0;
            ops.blocks_by_words(words, is_buffer, 0);
        }
    }
}

macro_rules! lead_to_blocks {
    ($(<$($param:ident)*> $ty:ty: $is_one:expr;)*) => {$(
        /// The remaining elements are not measured.
        impl<$($param),*> MallocSizeOf for $ty {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                // A finished iterator may contain any words.
                if self.len() > 0 {
                    ops.blocks_by_words(words_of(self), $is_one, 0);
                }
            }
        }
    )*};
}

lead_to_blocks! {
    <T> vec_deque::IntoIter<T>: |_, requested| requested % size_of::<T>().max(1) == 0;
    <T> linked_list::IntoIter<T>: list::is_node::<T>;
    <K V> btree_map::IntoIter<K, V>: btree::is_node::<K, V>;
    <T> btree_set::IntoIter<T>: btree::is_node::<T, ()>;
}

#[cfg(feature = "std")]
lead_to_blocks! {
    <K V> hash_map::IntoIter<K, V>: |_, requested| super::table::has_table_size::<(K, V)>(requested);
    <T> hash_set::IntoIter<T>: |_, requested| super::table::has_table_size::<T>(requested);
}

macro_rules! only_lend {
    ($($ty:ty),* $(,)?) => {$(
        /// Borrowed values belong to their owner.
        impl<T> MallocSizeOf for $ty {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
        }
    )*};
}

only_lend!(core::slice::Iter<'_, T>, core::slice::IterMut<'_, T>, core::slice::Chunks<'_, T>);
only_lend!(core::slice::ChunksExact<'_, T>, core::slice::Windows<'_, T>);
owns_nothing!(core::str::Chars<'_>, core::str::CharIndices<'_>, core::str::Bytes<'_>);
owns_nothing!(core::str::Lines<'_>, core::str::SplitWhitespace<'_>, string::Drain<'_>);
