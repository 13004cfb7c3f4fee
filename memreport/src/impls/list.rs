//! Measures linked lists. *Exact with the tracker*; without it the size of a node for each element.

use alloc::collections::LinkedList;
use core::ptr::NonNull;

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

/// A copy of std's node.
#[expect(dead_code, reason = "only its size is of interest")]
struct Node<T> {
    next: Option<NonNull<u8>>,
    previous: Option<NonNull<u8>>,
    element: T,
}

/// Returns whether a block of this size is a node to whose start a word points.
pub(super) fn is_node<T>(offset: usize, requested: usize) -> bool {
    (offset, requested) == (0, size_of::<Node<T>>())
}

impl<T> MallocShallowSizeOf for LinkedList<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        for element in self {
            ops.enclosing_block(element, size_of::<Node<T>>());
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for LinkedList<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |list, ops| {
            for element in list {
                ops.enclosing_block(element, size_of::<Node<T>>());
                element.add_size_of_excluding_this(ops);
            }
        });
    }
}
