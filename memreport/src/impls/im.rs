//! Persistent collections of `im`: nodes with several owners, counted by one of them, with the elements in it. *Lower bounds*: seen are the
//! nodes that elements lie in, and those that the value itself leads to, but not the nodes that only lead to others. Without the
//! tracker, the elements alone.
//!
//! Ordered maps and sets have elements in each node and are *exact with the tracker*. So are vectors of up to 64 elements.

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
