//! Measures persistent collections of `im`: shared nodes, each counted by one owner with its
//! elements.
//!
//! *Lower bounds*: counted are nodes that contain elements, and nodes that the value itself points
//! to. Inner nodes that only point to others are not. Without the tracker, only the elements count.
//! Ordered maps and sets have elements in each node and are *exact with the tracker*, and so are
//! vectors of up to 64 elements.

use im::{HashMap, HashSet, OrdMap, OrdSet, Vector};

use super::persistent::{add_vector, trees};
use crate::{MallocSizeOf, Ops};

impl<A: Clone + MallocSizeOf> MallocSizeOf for Vector<A> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |vector, ops| {
            add_vector(ops, vector, vector.is_inline(), vector.iter());
        });
    }
}

trees! {
    OrdMap<K, V>: <K: Ord MallocSizeOf, V: MallocSizeOf> (key, value) => key, value;
    OrdSet<A>: <A: Ord MallocSizeOf> element => element;
    HashMap<K, V, S>: <K: MallocSizeOf, V: MallocSizeOf, S> (key, value) => key, value;
    HashSet<A, S>: <A: MallocSizeOf, S> element => element;
}
