//! Measures the contents of cells. *Exact*, or *busy* while a `RefCell` is mutably borrowed.

use core::cell::{Cell, OnceCell, RefCell};
#[cfg(feature = "std")]
use std::sync::OnceLock;

use crate::{MallocSizeOf, Ops};

/// `Copy` values own nothing. Other values cannot be borrowed from a cell: measure such a field
/// with [`in_cell`].
impl<T: Copy> MallocSizeOf for Cell<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

/// Counts as *busy* while it is mutably borrowed.
impl<T: ?Sized + MallocSizeOf> MallocSizeOf for RefCell<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self.try_borrow() {
            Ok(value) => ops.measure_guarded(value),
            Err(_) => ops.busy(),
        }
    }
}

/// Measures the value in a cell by taking it out meanwhile, for `#[malloc_size_of(with =
/// memreport::in_cell)]`.
///
/// Code within the measurement that reads the cell finds a default value. A value that it stores
/// there is lost.
///
/// ```
/// use std::cell::Cell;
///
/// #[derive(memreport::MallocSizeOf)]
/// struct Parser {
///     #[malloc_size_of(with = memreport::in_cell)]
///     spare: Cell<Vec<u8>>,
/// }
///
/// let parser = Parser { spare: Cell::new(vec![1; 100]) };
/// assert!(memreport::measure(&parser).bytes >= 100);
/// assert_eq!(parser.spare.take().len(), 100);
/// ```
pub fn in_cell<'a, T: Default + MallocSizeOf>(cell: &'a Cell<T>, ops: &Ops<'a>) {
    ops.measure_owned(Taken { value: cell.take(), cell });
}

/// A guard that puts the value back into the cell, also if measuring it panics.
struct Taken<'c, T: Default> {
    value: T,
    cell: &'c Cell<T>,
}

impl<T: Default + MallocSizeOf> MallocSizeOf for Taken<'_, T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.value.add_size_of_excluding_this(ops);
    }
}

impl<T: Default> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.cell.set(core::mem::take(&mut self.value));
    }
}

impl<T: MallocSizeOf> MallocSizeOf for OnceCell<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get().into_iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }
}

#[cfg(feature = "std")]
impl<T: MallocSizeOf> MallocSizeOf for OnceLock<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get().into_iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use super::*;

    #[derive(Default)]
    struct Node {
        next: Cell<Option<Box<Node>>>,
    }

    impl MallocSizeOf for Node {
        fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
            in_cell(&self.next, ops);
        }
    }

    #[test]
    fn a_long_chain_of_cells_fits_the_stack_and_stays_whole() {
        const NODES: usize = if cfg!(miri) { 300 } else { 20_000 };
        let mut first = Node::default();
        for _ in 0..NODES {
            first = Node { next: Cell::new(Some(Box::new(first))) };
        }
        assert_eq!(crate::measure(&first).blocks, NODES);
        let mut found = 0;
        let mut next = first.next.take();
        while let Some(node) = next {
            found += 1;
            next = node.next.take();
        }
        assert_eq!(found, NODES);
    }
}
