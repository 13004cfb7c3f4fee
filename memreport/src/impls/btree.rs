//! Ordered maps and sets. *Exact with the tracker*; without it the size of all nodes, short of what the allocator rounds up.

use alloc::collections::{BTreeMap, BTreeSet};
use core::mem::{MaybeUninit, offset_of};
use core::ptr::NonNull;

use crate::allocator::words::words_of;
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
            ops.each_ahead(nodes, |(key, value)| {
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
            ops.each_ahead(nodes, |element| element.add_size_of_excluding_this(ops));
            walk.count_last(ops);
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

/// Whether a block of that size is a node, led to by its start.
pub(super) fn is_node<K, V>(offset: usize, requested: usize) -> bool {
    offset == 0 && [size_of::<Leaf<K, V>>(), size_of::<Inner<K, V>>()].contains(&requested)
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
    /// The inner nodes that may go on, root-most first, so that their heights fall: the highest trees have few levels, as each
    /// has six times the entries of the one below.
    inner: [InnerNode; 32],
    inner_count: usize,
    /// The node that was met last: it is counted when the next is met, and has been fetched by then.
    last: Option<Node>,
}

/// A node, by its first entry.
#[derive(Clone, Copy)]
struct Node {
    entry: *const u8,
    /// How far into the node that is, if it is as ours.
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
    /// How many levels are below it.
    height: usize,
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
        if self.add_node_at::<K, V>(ops, entry, size) {
            ops.prefetch_array::<K>(key, CAPACITY);
            ops.prefetch_array::<V>(value, CAPACITY);
        }
    }

    /// Counts the node of an entry of which this part lies there, if it is the first of it. Says whether it is.
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
            Step::Leaf => self.meet::<K, V>(ops, entry, size_of::<Leaf<K, V>>()),
            Step::Inner => self.meet::<K, V>(ops, entry, size_of::<Inner<K, V>>()),
        }
        true
    }

    /// Another node begins: the one before is counted.
    fn meet<K, V>(&mut self, ops: &Ops<'_>, entry: *const u8, size: usize) {
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

    /// No more nodes are to come. The map is still lent.
    pub(super) fn count_last(&mut self, ops: &Ops<'_>) {
        if let Some(node) = self.last.take() {
            node.count(ops);
        }
    }

    /// An entry that does not lie behind the one before.
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

    /// Where an inner node belongs whose first entry is met behind a leaf, and its height.
    ///
    /// Below a node that has inner nodes as children, it is the parent of that leaf. Otherwise the innermost node is finished, and
    /// this is the first that is not, of those around it: as the finished ones are children of each other, their heights rise
    /// one by one.
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
