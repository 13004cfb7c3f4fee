//! Measures persistent collections of `rpds`: each element is a shared block that one owner counts.
//!
//! Lists and stacks are *exact with the tracker*. The nodes of vectors, queues, maps and sets are
//! not exposed, so little more than the elements is counted: *lower bounds*. Without the tracker,
//! only the elements count.

use core::hash::{BuildHasher, Hash};

use archery::SharedPointerKind;
use rpds::{
    HashTrieMap, HashTrieSet, List, Queue, RedBlackTreeMap, RedBlackTreeSet, Stack, Vector,
};

use super::archery::counted;
use super::table::inside;
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

/// Counts the nodes that a value points to. Called after the elements, so that those are not taken
/// for nodes, and only for types without padding.
fn add_nodes<V>(ops: &Ops<'_>, value: &V) {
    ops.shared_blocks_by_words(words_of(value), (value, 0), usize::MAX);
}

/// Implements the trait for lists, whose iterators contain a pointer to the next node.
macro_rules! lists {
    ($($list:ident),*) => {$(
        impl<T: MallocSizeOf, P: SharedPointerKind> MallocSizeOf for $list<T, P> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                ops.add_with(self, |list, ops| {
                    let mut elements = list.iter();
                    loop {
                        add_nodes(ops, &elements);
                        let Some(element) = elements.next() else { break };
                        if counted(ops, element) {
                            element.add_size_of_excluding_this(ops);
                        }
                    }
                    add_nodes(ops, list);
                });
            }
        }
    )*};
}

lists!(List, Stack);

/// Measures elements, each of which has a block of its own.
fn add_elements<'a, T: MallocSizeOf + 'a>(ops: &Ops<'a>, elements: impl Iterator<Item = &'a T>) {
    for element in elements {
        if counted(ops, element) {
            element.add_size_of_excluding_this(ops);
        }
    }
}

impl<T: MallocSizeOf, P: SharedPointerKind> MallocSizeOf for Queue<T, P> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |queue, ops| {
            add_elements(ops, queue.iter());
            add_nodes(ops, queue);
        });
    }
}

impl<T: MallocSizeOf, P: SharedPointerKind> MallocSizeOf for Vector<T, P> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |vector, ops| add_elements(ops, vector.iter()));
    }
}

impl<T, P, H> MallocSizeOf for HashTrieSet<T, P, H>
where
    T: Eq + Hash + MallocSizeOf,
    P: SharedPointerKind,
    H: BuildHasher + Clone,
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |set, ops| add_elements(ops, set.iter()));
    }
}

impl<T: Ord + MallocSizeOf, P: SharedPointerKind> MallocSizeOf for RedBlackTreeSet<T, P> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |set, ops| {
            add_elements(ops, set.iter());
            add_nodes(ops, set);
        });
    }
}

/// Measures entries, each of which is one block with a key and its value.
fn add_entries<'a, K: MallocSizeOf + 'a, V: MallocSizeOf + 'a>(
    ops: &Ops<'a>,
    entries: impl Iterator<Item = (&'a K, &'a V)>,
) {
    for (key, value) in entries {
        let bytes = size_of::<([usize; 2], K, V)>();
        if ops.shared_enclosing_block(inside(key, value), bytes, usize::MAX) {
            key.add_size_of_excluding_this(ops);
            value.add_size_of_excluding_this(ops);
        }
    }
}

impl<K, V, P, H> MallocSizeOf for HashTrieMap<K, V, P, H>
where
    K: Eq + Hash + MallocSizeOf,
    V: MallocSizeOf,
    P: SharedPointerKind,
    H: BuildHasher + Clone,
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |map, ops| add_entries(ops, map.iter()));
    }
}

impl<K: Ord + MallocSizeOf, V: MallocSizeOf, P: SharedPointerKind> MallocSizeOf
    for RedBlackTreeMap<K, V, P>
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |map, ops| {
            add_entries(ops, map.iter());
            add_nodes(ops, map);
        });
    }
}
