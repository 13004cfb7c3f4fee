//! `PageList`: a vector of plain values in pages of its own, for one thread.
//!
//! Its memory comes straight from the kernel, so a collection does not change the heap that it
//! counts.
#![expect(unsafe_code, reason = "reads and writes its own mapping")]

use std::cell::Cell;
use std::mem::size_of;
use std::ptr::NonNull;

use super::lazy_slice::Zeroed;
use super::sys;

/// The bytes of a list's first mapping.
const FIRST_BYTES: usize = if cfg!(miri) { sys::PAGE } else { 64 * sys::PAGE };

/// A vector of plain values in pages of its own.
#[derive(Debug)]
pub(crate) struct PageList<T> {
    /// Invariant: a mapping of `capacity` values, or dangling if `capacity` is 0.
    pages: NonNull<u8>,
    capacity: usize,
    /// Invariant: this many values are initialised; at most `capacity`.
    length: usize,
    /// The number of values that were dropped because memory was short.
    pub(crate) lost: usize,
    _values: std::marker::PhantomData<T>,
}

// SAFETY: the list owns its mapping, and its values are `Send`.
unsafe impl<T: Copy + Send> Send for PageList<T> {}
// SAFETY: through a shared reference the values are only read, and they are `Sync`.
unsafe impl<T: Copy + Sync> Sync for PageList<T> {}

impl<T> PageList<T> {
    pub(crate) const fn new() -> Self {
        assert!(align_of::<T>() <= sys::PAGE, "pages are not aligned any further");
        PageList {
            pages: NonNull::dangling(),
            capacity: 0,
            length: 0,
            lost: 0,
            _values: std::marker::PhantomData,
        }
    }
}

impl<T: Copy> PageList<T> {
    /// Makes a list with address space for this many values. Its pages become resident as they are
    /// written.
    pub(crate) fn with_capacity(values: usize) -> Self {
        let mut list = Self::new();
        let bytes = values.saturating_mul(size_of::<T>());
        // In whole huge pages, if it fills a quarter of one: a huge page costs less than so many
        // small ones.
        let whole =
            bytes.checked_next_multiple_of(sys::HUGE_PAGE).filter(|_| bytes >= sys::HUGE_PAGE / 4);
        let bytes = whole.unwrap_or(bytes);
        if let Some(pages) = sys::map_aligned(bytes, true) {
            (list.pages, list.capacity) = (pages, bytes / size_of::<T>().max(1));
        }
        list
    }

    /// Makes the pages of the next so many values resident now, instead of when they are written.
    pub(crate) fn touch(&mut self, values: usize) {
        let end = self.length.saturating_add(values).min(self.capacity) * size_of::<T>();
        let first = (self.length * size_of::<T>()).next_multiple_of(sys::PAGE);
        for page in (first..end).step_by(sys::PAGE) {
            // SAFETY: the page begins inside the mapping.
            let place = unsafe { self.pages.add(page) };
            // SAFETY: the mapping is writable, and the place behind all values. Volatile, since
            // nobody reads it.
            unsafe { place.write_volatile(0) };
        }
    }

    /// Appends a value. When memory is short, it counts the value as lost and returns `false`.
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.length == self.capacity && self.grow().is_none() {
            self.lost += 1;
            return false;
        }
        // SAFETY: `length` is below `capacity`, so the place lies inside the mapping.
        let place = unsafe { self.pages.cast::<T>().add(self.length) };
        // SAFETY: the mapping is writable, and aligned to pages, which `new` asserts is enough.
        unsafe { place.write(value) };
        self.length += 1;
        true
    }

    /// Appends all of these values or none. When memory is short, it counts one as lost and returns
    /// `false`.
    pub(crate) fn push_all(&mut self, values: &[T]) -> bool {
        if values.is_empty() {
            // A list without a mapping has no place, not even for none.
            return true;
        }
        let Some(place) = self.room_for(values.len()) else { return false };
        // SAFETY: there is room for all values, and no reference into the mapping exists.
        unsafe { place.as_ptr().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        self.length += values.len();
        true
    }

    /// Returns the place behind the last value, with room for so many: at least one. When memory is
    /// short, it counts one as lost and returns `None`.
    fn room_for(&mut self, values: usize) -> Option<NonNull<T>> {
        while self.capacity - self.length < values {
            if self.grow().is_none() {
                self.lost += 1;
                return None;
            }
        }
        // SAFETY: there is room for a value, so the place lies inside the mapping.
        Some(unsafe { self.pages.cast::<T>().add(self.length) })
    }

    /// Shortens the list to this length. It keeps its pages.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `length` values are initialised; the start of an empty list is dangling but
        // aligned.
        unsafe { std::slice::from_raw_parts(self.start(), self.length) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the list is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start().cast_mut(), self.length) }
    }

    fn start(&self) -> *const T {
        if self.capacity == 0 {
            NonNull::<T>::dangling().as_ptr()
        } else {
            self.pages.cast::<T>().as_ptr()
        }
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let capacity = (self.capacity * 2).max(FIRST_BYTES / size_of::<T>().max(1));
        let (before, after) = (self.capacity * size_of::<T>(), capacity * size_of::<T>());
        self.pages = if self.capacity == 0 {
            sys::map(after)?
        } else {
            // SAFETY: it is the list's own mapping, and `&mut self` excludes references into it.
            unsafe { sys::grow_mapping(self.pages, before, after) }?
        };
        self.capacity = capacity;
        Some(())
    }
}

impl PageList<u64> {
    /// Appends words as [`push_all`](Self::push_all) does, past the caches. They are for this
    /// thread, until [`sys::end_writes_past_caches`] is called.
    pub(crate) fn push_all_past_caches(&mut self, words: &[Cell<u64>]) -> bool {
        if words.is_empty() {
            return true;
        }
        let Some(place) = self.room_for(words.len()) else { return false };
        // SAFETY: there is room for all words, and no reference into the mapping exists.
        unsafe { sys::write_past_caches(place, words) };
        self.length += words.len();
        true
    }
}

impl<T: Copy + Zeroed> PageList<T> {
    /// Makes a list of this many zeros. Returns `None` when memory is short.
    pub(crate) fn zeros(length: usize) -> Option<Self> {
        Self::zeros_in(length, sys::map_huge)
    }

    /// Makes a list of this many zeros, of which few will be written: it has small pages unless
    /// [others are preferred](Self::prefer_huge_page), and those that are not written are not
    /// resident. Returns `None` when memory is short.
    pub(crate) fn sparse_zeros(length: usize) -> Option<Self> {
        Self::zeros_in(length, sys::map_sparse)
    }

    /// Prefers one huge page for this value and its neighbours, whose pages are not touched yet.
    pub(crate) fn prefer_huge_page(&self, index: usize) {
        if let Some(page) = self.huge_page_of(index) {
            sys::prefer_huge_pages(page, sys::HUGE_PAGE);
        }
    }

    /// Makes one huge page of the small ones around this value, if the kernel can.
    pub(crate) fn make_huge_page(&self, index: usize) {
        if let Some(page) = self.huge_page_of(index) {
            sys::make_huge_page(page);
        }
    }

    /// Returns the huge page in which this value lies, if all of it is the list's.
    fn huge_page_of(&self, index: usize) -> Option<NonNull<u8>> {
        let offset = index.saturating_mul(size_of::<T>());
        let before = (self.pages.addr().get() + offset) % sys::HUGE_PAGE;
        let first = offset.checked_sub(before)?;
        let is_inside = first + sys::HUGE_PAGE <= self.capacity * size_of::<T>();
        // SAFETY: the sum lies within the mapping.
        is_inside.then(|| unsafe { self.pages.add(first) })
    }

    fn zeros_in(length: usize, map: impl Fn(usize) -> Option<NonNull<u8>>) -> Option<Self> {
        let mut list = Self::new();
        if length == 0 {
            return Some(list);
        }
        let pages = map(length.checked_mul(size_of::<T>())?)?;
        (list.pages, list.capacity, list.length) = (pages, length, length);
        Some(list)
    }
}

impl<T> Drop for PageList<T> {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: by the invariant of `pages` this is the list's whole mapping; it is dropped.
            unsafe { sys::unmap(self.pages, self.capacity * size_of::<T>()) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::mem::sys::shortage;

    #[test]
    fn a_list_keeps_its_values_when_it_grows() {
        const COUNT: u64 = if cfg!(miri) { 3000 } else { 200_000 };
        let mut list = PageList::new();
        assert!(list.as_slice().is_empty());
        for value in 0..COUNT {
            list.push(value);
        }
        assert!(list.as_slice().iter().copied().eq(0..COUNT));
        list.truncate(3);
        list.touch(usize::MAX);
        list.push(7);
        assert_eq!(list.as_mut_slice(), [0, 1, 2, 7]);
    }

    #[test]
    fn values_that_find_no_memory_are_counted() {
        let mut list = PageList::new();
        let is_pushed = shortage::run(|| [list.push(1_u64), list.push_all(&[2, 3])]);
        assert_eq!((is_pushed, list.lost), ([false, false], 2));
        assert!(list.push_all(&[]), "also of a list without a mapping");
        assert!(list.push_all(&[4, 5]) && list.push_all(&[]));
        assert_eq!((list.as_slice(), list.lost), (&[4, 5][..], 2));
        // All that fit into its pages, and none of those that do not.
        let room = list.capacity - 2;
        shortage::run(|| {
            assert!(list.push_all(&vec![6; room]));
            assert!(!list.push(7) && !list.push_all(&[8; 2]));
        });
        assert_eq!((list.as_slice().len(), list.lost), (room + 2, 4));
        assert!(shortage::run(|| PageList::<u32>::zeros(1).is_none()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the list is large")]
    fn a_list_of_a_quarter_of_a_huge_page_or_more_has_whole_ones() {
        for (values, capacity) in [
            (0, 0),
            (1000, 1000),
            (sys::HUGE_PAGE / 4 - 1, sys::HUGE_PAGE / 4 - 1),
            (sys::HUGE_PAGE / 4, sys::HUGE_PAGE),
            (2 << 20, 2 << 20),
            ((2 << 20) + 1, 4 << 20),
        ] {
            assert_eq!(PageList::<u8>::with_capacity(values).capacity, capacity, "{values}");
        }
    }
}
