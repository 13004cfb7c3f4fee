//! Ordered maps and sets. *Exact with the tracker*; without it the size of all nodes, short of what the allocator rounds up.

use alloc::collections::{BTreeMap, BTreeSet};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<K, V> MallocShallowSizeOf for BTreeMap<K, V> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<K, V, Self>(ops, self, self.len());
        let mut walk = Walk::default();
        for (key, value) in self {
            walk.add_node(ops, key, value);
        }
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf> MallocSizeOf for BTreeMap<K, V> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<K, V, Self>(ops, self, self.len());
        ops.add_with(self, |map, ops| {
            let mut walk = Walk::default();
            for (key, value) in map {
                walk.add_node(ops, key, value);
                key.add_size_of_excluding_this(ops);
                value.add_size_of_excluding_this(ops);
            }
        });
    }
}

impl<T> MallocShallowSizeOf for BTreeSet<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<T, (), Self>(ops, self, self.len());
        let mut walk = Walk::default();
        for element in self {
            walk.add_node(ops, element, &());
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for BTreeSet<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<T, (), Self>(ops, self, self.len());
        ops.add_with(self, |set, ops| {
            let mut walk = Walk::default();
            for element in set {
                walk.add_node(ops, element, &());
                element.add_size_of_excluding_this(ops);
            }
        });
    }
}

/// How many entries a node has room for.
const CAPACITY: usize = 11;

/// As std's leaf.
#[expect(dead_code, reason = "only its size is of interest")]
struct Leaf<K, V> {
    parent: Option<NonNull<u8>>,
    keys: [MaybeUninit<K>; CAPACITY],
    values: [MaybeUninit<V>; CAPACITY],
    parent_index: MaybeUninit<u16>,
    length: u16,
}

/// As std's inner node.
#[repr(C)]
struct Inner<K, V> {
    data: Leaf<K, V>,
    edges: [MaybeUninit<NonNull<u8>>; CAPACITY + 1],
}

/// Counts the one node of a map whose entries cannot lead to it: there are none, or they have no size.
pub(super) fn add_lone_leaf<K, V, M>(ops: &Ops<'_>, map: &M, length: usize) {
    if length > 0 && size_of::<(K, V)>() > 0 {
        return;
    }
    // Emptied by removals, a map keeps one leaf. Only the map's own words lead to it.
    let is_leaf = |offset, size| offset == 0 && size == size_of::<Leaf<K, V>>();
    if !ops.block_by_words(words_of(map), is_leaf) && length > 0 {
        ops.computed(size_of::<Leaf<K, V>>());
    }
}

/// Tells from the addresses of entries, in order, in which of them another node begins.
///
/// The entries of a node lie side by side, those of two nodes never do. In order, they are those of a leaf, then one of an inner
/// node, then again those of a leaf.
#[derive(Default)]
pub(super) struct Walk {
    /// The end of the entry before.
    end: usize,
    in_leaf: bool,
    /// The ends of the last entries of inner nodes, root-most first but for those that are finished.
    inner: [usize; 32],
    inner_count: usize,
}

enum Step {
    Within,
    Leaf,
    Inner,
}

impl Walk {
    /// Counts the node of this entry, if it is the first of it.
    #[inline]
    pub(super) fn add_node<K, V>(&mut self, ops: &Ops<'_>, key: &K, value: &V) {
        // The part that has a size: where a part without one lies is not certain.
        let (entry, size) = if size_of::<K>() > 0 {
            (core::ptr::from_ref(key).cast::<u8>(), size_of::<K>())
        } else {
            (core::ptr::from_ref(value).cast(), size_of::<V>())
        };
        let before = core::mem::replace(&mut self.end, entry.addr() + size);
        if before != entry.addr() && size > 0 {
            match self.step(entry.addr()) {
                Step::Within => {}
                Step::Leaf => ops.enclosing_block(entry, size_of::<Leaf<K, V>>()),
                Step::Inner => ops.enclosing_block(entry, size_of::<Inner<K, V>>()),
            }
        }
    }

    /// An entry that does not lie behind the one before.
    fn step(&mut self, start: usize) -> Step {
        self.in_leaf = !self.in_leaf;
        if self.in_leaf {
            return Step::Leaf;
        }
        let known = self.inner[..self.inner_count].iter().rposition(|end| *end == start);
        let place = known.unwrap_or(self.inner_count.min(self.inner.len() - 1));
        self.inner[place] = self.end;
        self.inner_count = place + 1;
        if known.is_some() { Step::Within } else { Step::Inner }
    }
}
