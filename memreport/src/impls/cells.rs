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
    let taken = Taken { value: cell.take(), cell };
    ops.measure_borrowed(&taken.value, T::add_size_of_excluding_this);
}

/// A guard that puts the value back into the cell, also if measuring it panics.
struct Taken<'c, T: Default> {
    value: T,
    cell: &'c Cell<T>,
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
