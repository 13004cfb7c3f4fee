//! Persistent collections of `rpds`: each element is a block of its own with several owners, and is counted by one of them. Lists and stacks
//! are *exact with the tracker*. Of vectors, queues, maps and sets, whose nodes nobody lends, hardly more than the elements is seen:
//! *lower bounds*. Without the tracker, the elements alone.

use core::hash::{BuildHasher, Hash};

use archery::SharedPointerKind;
use rpds::{
    HashTrieMap, HashTrieSet, List, Queue, RedBlackTreeMap, RedBlackTreeSet, Stack, Vector,
};

use super::archery::counted;
use super::table::inside;
use crate::allocator::words::words_of;
use crate::{MallocSizeOf, Ops};

/// Counts the nodes that a value leads to, behind the elements, so that those are not taken for nodes. Only for what has no padding.
fn add_nodes<V>(ops: &Ops<'_>, value: &V) {
    ops.shared_blocks_by_words(words_of(value), (value, 0), usize::MAX);
}

/// Each has an iterator that leads to the next node.
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

/// Measures elements, each of which is alone in a block.
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

/// Measures entries, a key and its value being one block.
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
