//! Measures ordered maps and sets. *Exact with the tracker*; without it the size of all nodes.

use alloc::collections::{BTreeMap, BTreeSet};
use core::mem::{MaybeUninit, offset_of};
use core::ptr::NonNull;

use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<K, V> MallocShallowSizeOf for BTreeMap<K, V> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<K, V, Self>(ops, self, self.len());
        let mut walk = Walk::default();
        for (key, value) in self {
            walk.add_node(ops, key, value);
        }
        walk.count_last(ops);
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf> MallocSizeOf for BTreeMap<K, V> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<K, V, Self>(ops, self, self.len());
        ops.add_with(self, |map, ops| {
            let mut walk = Walk::default();
            let nodes = map.iter().inspect(|(key, value)| walk.add_node(ops, *key, *value));
            ops.each_prefetched(nodes, |(key, value)| {
                key.add_size_of_excluding_this(ops);
                value.add_size_of_excluding_this(ops);
            });
            walk.count_last(ops);
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
        walk.count_last(ops);
    }
}

impl<T: MallocSizeOf> MallocSizeOf for BTreeSet<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<T, (), Self>(ops, self, self.len());
        ops.add_with(self, |set, ops| {
            let mut walk = Walk::default();
            let nodes = set.iter().inspect(|element| walk.add_node(ops, *element, &()));
            ops.each_prefetched(nodes, |element| element.add_size_of_excluding_this(ops));
            walk.count_last(ops);
        });
    }
}

/// The most entries of a node.
const CAPACITY: usize = 11;

/// A copy of std's leaf node.
#[expect(dead_code, reason = "only its size is of interest")]
struct Leaf<K, V> {
    parent: Option<NonNull<u8>>,
    keys: [MaybeUninit<K>; CAPACITY],
    values: [MaybeUninit<V>; CAPACITY],
    parent_index: MaybeUninit<u16>,
    length: u16,
}

/// A copy of std's inner node.
#[repr(C)]
struct Inner<K, V> {
    data: Leaf<K, V>,
    edges: [MaybeUninit<NonNull<u8>>; CAPACITY + 1],
}

/// Returns whether a block of this size is a node to whose start a word points.
pub(super) fn is_node<K, V>(offset: usize, requested: usize) -> bool {
    offset == 0 && node_sizes::<K, V>().contains(&requested)
}

/// Returns the requested sizes of a leaf and of an inner node in bytes.
pub(super) fn node_sizes<K, V>() -> [usize; 2] {
    [size_of::<Leaf<K, V>>(), size_of::<Inner<K, V>>()]
}

/// Counts the only node of a map whose entries cannot locate it: there are none, or they have no
/// size.
pub(super) fn add_lone_leaf<K, V, M>(ops: &Ops<'_>, map: &M, length: usize) {
    if length > 0 && size_of::<(K, V)>() > 0 {
        return;
    }
    // After removals, an empty map keeps one leaf. Only the map's own words point to it.
    let is_leaf = |offset, size| offset == 0 && size == size_of::<Leaf<K, V>>();
    if !ops.block_by_words(words_of(map), is_leaf) && length > 0 {
        ops.computed(size_of::<Leaf<K, V>>());
    }
}

/// Detects the entries that begin another node, by the addresses of all entries in order.
///
/// The entries of one node are adjacent, those of two nodes never are. In order, they are the
/// entries of a leaf, then one entry of an inner node, then the entries of another leaf.
#[derive(Default)]
pub(super) struct Walk {
    /// The end of the previous entry.
    end: usize,
    in_leaf: bool,
    /// The inner nodes that may have further entries, from the root down, so that their heights
    /// fall. Even the tallest trees have few levels, because each level has six times the entries
    /// of the one below.
    inner: [InnerNode; 32],
    inner_count: usize,
    /// The last node. It is counted when the next one begins, and has been prefetched by then.
    last: Option<Node>,
}

/// A node, by its first entry.
#[derive(Clone, Copy)]
struct Node {
    entry: *const u8,
    /// The offset of this entry in the node, if std's node is like the copy.
    offset: usize,
    size: usize,
}

impl Node {
    fn count(self, ops: &Ops<'_>) {
        ops.enclosing_block_at(self.entry, self.offset, self.size);
    }
}

/// An inner node that the walk is in.
#[derive(Clone, Copy, Default)]
struct InnerNode {
    /// The end of its last entry so far.
    end: usize,
    /// The number of levels below it.
    height: usize,
}

enum Step {
    Within,
    Leaf,
    Inner,
}

impl Walk {
    /// Counts the node of this entry, if the entry is its first.
    #[inline]
    pub(super) fn add_node<K, V>(&mut self, ops: &Ops<'_>, key: &K, value: &V) {
        // The part that has a size: the position of a part without one is not certain.
        let (entry, size) = if size_of::<K>() > 0 {
            (core::ptr::from_ref(key).cast::<u8>(), size_of::<K>())
        } else {
            (core::ptr::from_ref(value).cast(), size_of::<V>())
        };
        if self.add_node_at::<K, V>(ops, entry, size) {
            ops.prefetch_array::<K>(key, CAPACITY);
            ops.prefetch_array::<V>(value, CAPACITY);
        }
    }

    /// Counts the node of an entry with a part at this address, if the entry is its first. Returns
    /// whether it is.
    #[inline]
    pub(super) fn add_node_at<K, V>(
        &mut self,
        ops: &Ops<'_>,
        entry: *const u8,
        size: usize,
    ) -> bool {
        let before = core::mem::replace(&mut self.end, entry.addr() + size);
        if before == entry.addr() || size == 0 {
            return false;
        }
        match self.step(entry.addr()) {
            Step::Within => return false,
            Step::Leaf => self.visit::<K, V>(ops, entry, size_of::<Leaf<K, V>>()),
            Step::Inner => self.visit::<K, V>(ops, entry, size_of::<Inner<K, V>>()),
        }
        true
    }

    /// Begins another node, and counts the previous one.
    fn visit<K, V>(&mut self, ops: &Ops<'_>, entry: *const u8, size: usize) {
        let offset = if size_of::<K>() > 0 {
            offset_of!(Leaf<K, V>, keys)
        } else {
            offset_of!(Leaf<K, V>, values)
        };
        ops.prefetch_enclosing_block(entry.wrapping_sub(offset));
        if let Some(node) = self.last.replace(Node { entry, offset, size }) {
            node.count(ops);
        }
    }

    /// Counts the last node. The map is still borrowed.
    pub(super) fn count_last(&mut self, ops: &Ops<'_>) {
        if let Some(node) = self.last.take() {
            node.count(ops);
        }
    }

    /// Classifies an entry that does not follow the previous one.
    fn step(&mut self, start: usize) -> Step {
        self.in_leaf = !self.in_leaf;
        if self.in_leaf {
            return Step::Leaf;
        }
        let open = &self.inner[..self.inner_count];
        let known = open.iter().rposition(|node| node.end == start);
        let (place, height) = match known {
            Some(place) => (place, open[place].height),
            None => self.place_of_new(),
        };
        self.inner[place] = InnerNode { end: self.end, height };
        self.inner_count = place + 1;
        if known.is_some() { Step::Within } else { Step::Inner }
    }

    /// Returns the index and the height of an inner node whose first entry follows a leaf.
    ///
    /// Below a node that has inner nodes as children, it is the parent of that leaf. Otherwise the
    /// innermost node is complete, and the new one is the first incomplete node around it. Complete
    /// nodes are children of each other, so their heights rise one by one.
    fn place_of_new(&self) -> (usize, usize) {
        let mut place = self.inner_count;
        let mut height = 1;
        while place > 0 && self.inner[place - 1].height == height {
            place -= 1;
            height += 1;
        }
        (place.min(self.inner.len() - 1), height)
    }
}
