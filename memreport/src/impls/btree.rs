//! Ordered maps and sets. *Exact with the tracker*; without it the size of all nodes, short of what the allocator rounds up.

use alloc::collections::{BTreeMap, BTreeSet};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<K, V> MallocShallowSizeOf for BTreeMap<K, V> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        if size_of::<K>() > 0 {
            add_nodes::<K, V, Self, K>(ops, self, self.keys());
        } else {
            add_nodes::<K, V, Self, V>(ops, self, self.values());
        }
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf> MallocSizeOf for BTreeMap<K, V> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        for (key, value) in self {
            ops.add(key);
            ops.add(value);
        }
    }
}

impl<T> MallocShallowSizeOf for BTreeSet<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        add_nodes::<T, (), Self, T>(ops, self, self.iter());
    }
}

impl<T: MallocSizeOf> MallocSizeOf for BTreeSet<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        for element in self {
            ops.add(element);
        }
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

/// Counts the nodes of a map, of which all entries' keys (or all values) are given, in order.
fn add_nodes<'a, K, V, M, E: 'a>(
    ops: &Ops<'_>,
    map: &M,
    entries: impl ExactSizeIterator<Item = &'a E>,
) {
    if entries.len() == 0 || size_of::<E>() == 0 {
        // Emptied by removals, a map keeps one leaf, to which only its own words lead.
        let is_leaf = |offset, size| offset == 0 && size == size_of::<Leaf<K, V>>();
        if !ops.block_by_words(words_of(map), is_leaf) && entries.len() > 0 {
            ops.computed(size_of::<Leaf<K, V>>());
        }
        return;
    }
    let mut walk = Walk::default();
    let steps = entries.map(|entry| (core::ptr::from_ref(entry), walk.step(entry)));
    if ops.finds_enclosing_blocks() {
        let into_new_nodes = steps.filter(|(_, step)| *step != Step::Within);
        ops.enclosing_blocks(into_new_nodes.map(|(entry, _)| entry.cast()), 0);
    } else {
        let bytes = steps.map(|(_, step)| match step {
            Step::Within => 0,
            Step::Leaf => size_of::<Leaf<K, V>>(),
            Step::Inner => size_of::<Inner<K, V>>(),
        });
        ops.computed(bytes.sum());
    }
}

/// Tells from the addresses of entries, in order, in which of them another node begins.
///
/// The entries of a node lie side by side, those of two nodes never do. In order, they are those of a leaf, then one of an inner
/// node, then again those of a leaf.
#[derive(Default)]
struct Walk {
    /// The end of the entry before.
    end: usize,
    in_leaf: bool,
    /// The ends of the last entries of inner nodes, root-most first but for those that are finished.
    inner: [usize; 32],
    inner_count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Within,
    Leaf,
    Inner,
}

impl Walk {
    fn step<E>(&mut self, entry: &E) -> Step {
        let start = core::ptr::from_ref(entry).addr();
        let before = core::mem::replace(&mut self.end, start + size_of::<E>());
        if before == start {
            return Step::Within;
        }
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
