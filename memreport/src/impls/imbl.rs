//! Measures persistent collections of `imbl`: shared nodes, each counted by one owner with its
//! elements.
//!
//! *Lower bounds*: counted are nodes that contain elements, and nodes that the value itself points
//! to. Inner nodes that only point to others are not, nor are copies of keys in them. Without the
//! tracker, only the elements count.

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
