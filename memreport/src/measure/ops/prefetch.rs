//! Prefetches the memory of the next elements, because a size query mostly waits for memory.
//!
//! A prefetch is a hint. It reads nothing and accepts any address.

use super::queue::OwningPointer;
use super::{Collection, Ops};
use crate::allocator::size_source::SizeSource;
use crate::measure::lookahead::{LINE, Lookahead};
use crate::measure::size_of::MallocSizeOf;
use crate::tracker::Tracker;
use crate::tracker::prefetch::fetch;

/// The distance in elements at which an element's blocks are prefetched: as many as a processor can
/// have in flight.
const AHEAD: usize = 16;

/// The distance in elements at which the blocks have arrived, and their pointees are prefetched.
const POINTEES_AHEAD: usize = AHEAD / 2;

/// The number of elements after which an element yielded by an iterator has itself arrived.
const ARRIVED: usize = 4;

/// The number of elements of a slice that an outer container prefetches.
const FIRST_ELEMENTS: usize = 8;

/// The most bytes of an array that are prefetched.
const MAX_ARRAY_BYTES: usize = 8 * LINE;

impl Lookahead<'_> {
    /// Prefetches the memory behind a pointer, unless the queue does that.
    #[inline]
    pub(crate) fn pointee<T: ?Sized + MallocSizeOf>(self, value: &T) {
        if !self.defers_pointees {
            value.prefetch(self);
        }
    }

    /// Prefetches the first few elements of a vector. See [`contents`](Self::contents).
    #[inline]
    pub(crate) fn elements<T>(self, elements: &[T]) {
        if core::mem::needs_drop::<T>() {
            let start = elements.as_ptr();
            let bytes = size_of::<T>() * elements.len().min(FIRST_ELEMENTS);
            self.contents(start, bytes);
            // The lines between the first and the last one.
            for offset in (LINE..bytes.min(MAX_ARRAY_BYTES)).step_by(LINE) {
                fetch(start.cast::<u8>().wrapping_add(offset));
            }
        } else {
            self.block(elements.as_ptr());
        }
    }

    /// Prefetches the blocks that the first few elements of a vector own.
    #[inline]
    pub(crate) fn pointees_of_elements<T: MallocSizeOf>(self, elements: &[T]) {
        if core::mem::needs_drop::<T>() {
            elements.iter().take(FIRST_ELEMENTS).for_each(|element| element.prefetch(self));
        }
    }
}

impl Ops<'_> {
    /// Prefetches the memory that measuring this value reads first, if sizes are queried.
    #[inline]
    pub fn prefetch<T: ?Sized + MallocSizeOf>(&self, value: &T) {
        if let Some(ahead) = self.lookahead() {
            value.prefetch(ahead);
        }
    }

    /// Prefetches the memory behind the blocks that [`prefetch`](Self::prefetch) has fetched.
    #[inline]
    pub fn prefetch_pointees<T: ?Sized + MallocSizeOf>(&self, value: &T) {
        if let Some(ahead) = self.lookahead() {
            value.prefetch_pointees(Lookahead { defers_pointees: true, ..ahead });
        }
    }

    /// Prefetches the memory behind a queued pointer, whose block has arrived and can be read.
    #[inline]
    pub(super) fn fetch_pointees(&self, owner: &dyn OwningPointer) {
        if let Some(ahead) = self.lookahead() {
            owner.prefetch_pointees(ahead);
        }
    }

    /// Prefetches the table's entry of the block that contains `inside`, if a tracker answers.
    #[inline]
    pub(crate) fn prefetch_enclosing_block(&self, inside: *const u8) {
        if let SizeSource::Table(table) = self.collection.sizes {
            fetch(table.entry_address(inside.addr()));
        }
    }

    /// Prefetches the elements of an array, as far as they are visited.
    #[inline]
    pub(crate) fn prefetch_array<T>(&self, first: *const T, length: usize) {
        if core::mem::needs_drop::<T>() && self.lookahead().is_some() {
            let bytes = size_of::<T>().saturating_mul(length).min(MAX_ARRAY_BYTES);
            (0..bytes).step_by(LINE).for_each(|offset| {
                fetch(first.cast::<u8>().wrapping_add(offset));
            });
        }
    }

    /// Visits the elements of a slice in order, and prefetches those ahead.
    #[inline]
    pub(crate) fn each_of_slice<'s, T: MallocSizeOf>(
        &self,
        slice: &'s [T],
        mut visit: impl FnMut(&'s T),
    ) {
        if T::owns_nothing() {
            return;
        }
        // An outer container has prefetched the first few.
        let (Some(next), Some(later)) = (slice.get(AHEAD..), slice.get(POINTEES_AHEAD..)) else {
            return slice.iter().for_each(visit);
        };
        let Some(ahead) = self.lookahead().filter(|_| core::mem::needs_drop::<T>()) else {
            return slice.iter().for_each(visit);
        };
        slice.iter().take(AHEAD).for_each(|element| element.prefetch(ahead));
        let _visiting = self.visiting_fetched();
        for ((element, next), later) in slice.iter().zip(next).zip(later) {
            next.prefetch(ahead);
            later.prefetch_pointees(ahead);
            visit(element);
            self.drain_overflow();
        }
        slice.iter().skip(next.len()).for_each(visit);
    }

    /// Visits the items of an iterator in order, and prefetches those ahead.
    #[inline]
    pub(crate) fn each_prefetched<T: Copy + Ahead>(
        &self,
        items: impl Iterator<Item = T>,
        mut visit: impl FnMut(T),
    ) {
        let are_few = items.size_hint().1.is_some_and(|items| items <= FIRST_ELEMENTS);
        let Some(ahead) = self.lookahead().filter(|_| !are_few && !T::owns_nothing()) else {
            return items.for_each(visit);
        };
        let _visiting = self.visiting_fetched();
        let mut waiting: [Option<T>; AHEAD] = [None; AHEAD];
        let mut next = 0;
        items.for_each(|item| {
            item.fetch();
            if let Some(arrived) = waiting[(next + AHEAD - ARRIVED) % AHEAD] {
                arrived.prefetch(ahead);
            }
            if let Some(later) = waiting[(next + AHEAD - ARRIVED - POINTEES_AHEAD) % AHEAD] {
                later.prefetch_pointees(ahead);
            }
            if let Some(pending) = waiting[next].replace(item) {
                visit(pending);
                self.drain_overflow();
            }
            next = (next + 1) % AHEAD;
        });
        waiting.rotate_left(next);
        visit_rest(&waiting, &mut visit);
    }

    /// Returns the prefetcher, or `None` if sizes come from layouts.
    #[inline]
    fn lookahead(&self) -> Option<Lookahead<'_>> {
        let table: Option<&dyn Tracker> = match self.collection.sizes {
            SizeSource::Layout => return None,
            SizeSource::Allocator(_) | SizeSource::Function(_) => None,
            SizeSource::Table(table) => Some(table),
        };
        let Collection { reads_headers, known_blocks, classes, .. } = self.collection;
        Some(Lookahead {
            table,
            reads_headers: *reads_headers,
            known_blocks: known_blocks.as_ref(),
            classes_at_once: self.collection.claims_at_once().then_some(*classes),
            defers_pointees: false,
        })
    }
}

/// An item of an iterator: an element or an entry.
pub(crate) trait Ahead {
    fn owns_nothing() -> bool;
    /// Prefetches the item itself: an iterator need not read it.
    fn fetch(self);
    fn prefetch(self, ahead: Lookahead<'_>);
    fn prefetch_pointees(self, ahead: Lookahead<'_>);
}

/// Prefetches the first and the last cache line of a value.
#[inline]
fn fetch_ends<T>(value: &T) {
    let start = core::ptr::from_ref(value).cast::<u8>();
    fetch(start);
    if size_of::<T>() > size_of::<usize>() {
        fetch(start.wrapping_add(size_of::<T>() - 1));
    }
}

impl<T: MallocSizeOf> Ahead for &T {
    #[inline]
    fn owns_nothing() -> bool {
        T::owns_nothing()
    }

    #[inline]
    fn fetch(self) {
        fetch_ends(self);
    }

    #[inline]
    fn prefetch(self, ahead: Lookahead<'_>) {
        T::prefetch(self, ahead);
    }

    #[inline]
    fn prefetch_pointees(self, ahead: Lookahead<'_>) {
        T::prefetch_pointees(self, ahead);
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf> Ahead for (&K, &V) {
    #[inline]
    fn owns_nothing() -> bool {
        K::owns_nothing() && V::owns_nothing()
    }

    #[inline]
    fn fetch(self) {
        fetch_ends(self.0);
        fetch_ends(self.1);
    }

    #[inline]
    fn prefetch(self, ahead: Lookahead<'_>) {
        self.0.prefetch(ahead);
        self.1.prefetch(ahead);
    }

    #[inline]
    fn prefetch_pointees(self, ahead: Lookahead<'_>) {
        self.0.prefetch_pointees(ahead);
        self.1.prefetch_pointees(ahead);
    }
}

/// A field of any type, for generated code. If the type is not measurable, fetching does nothing,
/// so that the error appears once, at the field.
#[derive(Debug)]
pub struct Fetch<'v, T: ?Sized>(pub &'v T);

/// The methods of [`Fetch`] for measurable types.
pub trait FetchMeasurable {
    /// Calls [`MallocSizeOf::prefetch`].
    fn fetch(&self, ahead: Lookahead<'_>);
    /// Calls [`MallocSizeOf::prefetch_pointees`].
    fn fetch_pointees(&self, ahead: Lookahead<'_>);
}

impl<T: ?Sized + MallocSizeOf> FetchMeasurable for Fetch<'_, T> {
    #[inline]
    fn fetch(&self, ahead: Lookahead<'_>) {
        self.0.prefetch(ahead);
    }

    #[inline]
    fn fetch_pointees(&self, ahead: Lookahead<'_>) {
        self.0.prefetch_pointees(ahead);
    }
}

/// The methods of [`Fetch`] for all types. It takes one reference more, so that the other trait has
/// precedence.
pub trait FetchAny {
    /// Does nothing.
    fn fetch(&self, _ahead: Lookahead<'_>) {}
    /// Does nothing.
    fn fetch_pointees(&self, _ahead: Lookahead<'_>) {}
}

impl<T: ?Sized> FetchAny for &Fetch<'_, T> {}

/// Visits the rest out of line, so that the loop's own visit is inlined.
#[cold]
#[inline(never)]
fn visit_rest<T: Copy>(waiting: &[Option<T>], visit: &mut dyn FnMut(T)) {
    waiting.iter().flatten().for_each(|pending| visit(*pending));
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::cell::RefCell;
    use core::fmt::Write as _;

    use super::*;
    use crate::measure::ops::{Collection, measure_with};

    /// An element that logs its number: `p` for a prefetch, `q` for one of its pointees, `v` for
    /// the visit.
    struct Element<'l>(usize, &'l RefCell<String>);

    impl Element<'_> {
        fn log(&self, event: char) {
            let _ = write!(self.1.borrow_mut(), " {event}{}", self.0);
        }
    }

    impl Drop for Element<'_> {
        fn drop(&mut self) {}
    }

    impl MallocSizeOf for Element<'_> {
        fn add_size_of_excluding_this<'a>(&'a self, _: &Ops<'a>) {
            self.log('v');
        }

        fn prefetch(&self, _: Lookahead<'_>) {
            self.log('p');
        }

        fn prefetch_pointees(&self, _: Lookahead<'_>) {
            self.log('q');
        }
    }

    fn no_size(_: *const core::ffi::c_void) -> usize {
        0
    }

    /// Returns what happens to so many elements during a visit.
    fn events(
        count: usize,
        sizes: SizeSource,
        visit: for<'a> fn(&'a [Element<'a>], &Ops<'a>),
    ) -> String {
        let log = RefCell::default();
        let elements: Vec<Element<'_>> = (0..count).map(|number| Element(number, &log)).collect();
        measure_with(&Collection::new(sizes, None), &elements, |elements, ops| {
            visit(elements, ops);
        });
        let events = log.borrow().trim_start().to_owned();
        events
    }

    fn slice<'a>(elements: &'a [Element<'a>], ops: &Ops<'a>) {
        ops.each_of_slice(elements, |element| element.add_size_of_excluding_this(ops));
    }

    fn iterator<'a>(elements: &'a [Element<'a>], ops: &Ops<'a>) {
        ops.each_prefetched(elements.iter(), |element| element.add_size_of_excluding_this(ops));
    }

    const ASKED: SizeSource = SizeSource::Function(no_size);

    #[test]
    fn elements_of_a_slice_are_prefetched_16_ahead_and_their_pointees_8_ahead() {
        let expected = "p0 p1 p2 p3 p4 p5 p6 p7 p8 p9 p10 p11 p12 p13 p14 p15 \
                        p16 q8 v0 p17 q9 v1 \
                        v2 v3 v4 v5 v6 v7 v8 v9 v10 v11 v12 v13 v14 v15 v16 v17";
        assert_eq!(events(18, ASKED, slice), expected);
        assert_eq!(events(3, ASKED, slice), "v0 v1 v2");
        assert!(!events(18, SizeSource::Layout, slice).contains(['p', 'q']));
    }

    #[test]
    fn items_of_an_iterator_are_prefetched_when_they_have_arrived() {
        let expected = "p0 p1 p2 p3 p4 p5 p6 p7 \
                        p8 q0 p9 q1 p10 q2 p11 q3 p12 q4 v0 p13 q5 v1 \
                        v2 v3 v4 v5 v6 v7 v8 v9 v10 v11 v12 v13 v14 v15 v16 v17";
        assert_eq!(events(18, ASKED, iterator), expected);
        let few = events(FIRST_ELEMENTS, ASKED, iterator);
        assert_eq!(few, "v0 v1 v2 v3 v4 v5 v6 v7");
        assert!(events(FIRST_ELEMENTS + 1, ASKED, iterator).starts_with("p0 "));
        assert!(!events(18, SizeSource::Layout, iterator).contains(['p', 'q']));
    }
}
