//! Persistent collections of `imbl`: nodes with several owners, counted by one of them, with the elements in it. *Lower bounds*: seen are
//! the nodes that elements lie in, and those that the value itself leads to, but neither the nodes that only lead to others nor
//! the copies of keys in them. Without the tracker, the elements alone.

use imbl::shared_ptr::SharedPointerKind;
use imbl::{GenericHashMap, GenericHashSet, GenericOrdMap, GenericOrdSet, GenericVector};

use super::persistent::{add_vector, trees};
use crate::{MallocSizeOf, Ops};

impl<A: MallocSizeOf, P: SharedPointerKind> MallocSizeOf for GenericVector<A, P> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |vector, ops| {
            add_vector(ops, vector, vector.is_inline(), vector.iter());
        });
    }
}

trees! {
    GenericOrdMap<K, V, P>, unless is_empty: <K: Ord MallocSizeOf, V: MallocSizeOf, P: SharedPointerKind> (key, value) => key, value;
    GenericOrdSet<A, P>, unless is_empty: <A: Ord MallocSizeOf, P: SharedPointerKind> element => element;
    GenericHashMap<K, V, S, P>: <K: MallocSizeOf, V: MallocSizeOf, S, P: SharedPointerKind> (key, value) => key, value;
    GenericHashSet<A, S, P>: <A: MallocSizeOf, S, P: SharedPointerKind> element => element;
}
