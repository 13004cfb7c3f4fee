//! Looking ahead: asking for the size of a block mostly waits for memory, so what comes next is fetched meanwhile.
//!
//! A fetch is a hint: it reads nothing, and may be of any address. Each question is still asked and answered before the call that
//! asks it returns.
#![expect(unsafe_code, reason = "fetches memory by an instruction of the processor")]

use super::Ops;
use super::queue::Behind;
use crate::allocator::size_source::SizeSource;
use crate::measure::size_of::MallocSizeOf;
use crate::tracker::Tracker;

/// How many elements ahead the blocks of an element are fetched: as many as a processor can wait for at once.
const AHEAD: usize = 16;

/// How many elements ahead they have come, and what is behind them is fetched.
const BEHIND: usize = AHEAD / 2;

/// How many elements later one that an iterator yields has come itself.
const COME: usize = 4;

/// How many elements of a slice are fetched from afar.
const FEW: usize = 8;

/// A line of memory, which is fetched at once, in bytes; where lines are longer, some are fetched again.
const LINE: usize = 64;

/// How much of an array is fetched, in bytes.
const MOST: usize = 8 * LINE;

/// Fetches what will be asked about soon: hints to the processor, which read nothing and change nothing.
#[derive(Clone, Copy)]
pub struct Lookahead<'t> {
    /// Who answers; if nobody, the allocator does, and looks before the block.
    table: Option<&'t dyn Tracker>,
    /// What lies behind pointers that are waited for is left alone.
    waits: bool,
}

impl core::fmt::Debug for Lookahead<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Lookahead").field("by_table", &self.table.is_some()).finish()
    }
}

impl Lookahead<'_> {
    /// A block that will be asked about, and that nobody looks into, as that of a text.
    #[inline]
    pub fn block<T: ?Sized>(self, start: *const T) {
        let start = start.cast::<u8>();
        match self.table {
            Some(table) => fetch(table.kept_at(start.addr())),
            None => fetch(header(start)),
        }
    }

    /// A block that will be asked about, and so much of it that will be looked into.
    #[inline]
    pub fn contents<T: ?Sized>(self, start: *const T, bytes: usize) {
        self.block(start);
        let start = start.cast::<u8>();
        if self.table.is_some() {
            fetch(start);
        }
        // The beginning is mostly in one line with the header.
        fetch(start.wrapping_add(bytes.saturating_sub(1)));
    }

    /// What lies behind a pointer, unless that is waited for.
    #[inline]
    pub(crate) fn behind<T: ?Sized + MallocSizeOf>(self, value: &T) {
        if !self.waits {
            value.prefetch(self);
        }
    }

    /// As [`contents`](Self::contents), for a value that is a block of its own.
    #[inline]
    pub(crate) fn value<T: ?Sized>(self, value: &T) {
        self.contents(core::ptr::from_ref(value), size_of_val(value));
    }

    /// As [`contents`](Self::contents), for the first few elements of a vector.
    #[inline]
    pub(crate) fn elements<T>(self, elements: &[T]) {
        if core::mem::needs_drop::<T>() {
            self.contents(elements.as_ptr(), size_of::<T>() * elements.len().min(FEW));
        } else {
            self.block(elements.as_ptr());
        }
    }

    /// What the first few elements of a vector own.
    #[inline]
    pub(crate) fn behind_elements<T: MallocSizeOf>(self, elements: &[T]) {
        if core::mem::needs_drop::<T>() {
            elements.iter().take(FEW).for_each(|element| element.prefetch(self));
        }
    }
}

impl Ops<'_> {
    /// Fetches what measuring this value will ask about first, where that is in memory.
    #[inline]
    pub fn prefetch<T: ?Sized + MallocSizeOf>(&self, value: &T) {
        if let Some(ahead) = self.lookahead() {
            value.prefetch(ahead);
        }
    }

    /// Fetches what measuring this value will ask about next, behind what [`prefetch`](Self::prefetch) has fetched.
    #[inline]
    pub fn prefetch_behind<T: ?Sized + MallocSizeOf>(&self, value: &T) {
        if let Some(ahead) = self.lookahead() {
            value.prefetch_behind(Lookahead { waits: true, ..ahead });
        }
    }

    /// As [`prefetch_behind`](Self::prefetch_behind), for an owner that has waited: the block has come, and can be looked into.
    #[inline]
    pub(crate) fn fetch_behind(&self, owner: &dyn Behind) {
        if let Some(ahead) = self.lookahead() {
            owner.prefetch_behind(ahead);
        }
    }

    /// Fetches what is known of the block that holds `inside`, if a tracker is asked about it.
    #[inline]
    pub(crate) fn prefetch_enclosing_block(&self, inside: *const u8) {
        if let SizeSource::Table(table) = self.collection.sizes {
            fetch(table.kept_at(inside.addr()));
        }
    }

    /// Fetches the elements of an array that begins here, as far as they are looked at.
    #[inline]
    pub(crate) fn prefetch_array<T>(&self, first: *const T, length: usize) {
        if core::mem::needs_drop::<T>() && self.lookahead().is_some() {
            let bytes = size_of::<T>().saturating_mul(length).min(MOST);
            (0..bytes).step_by(LINE).for_each(|offset| {
                fetch(first.cast::<u8>().wrapping_add(offset));
            });
        }
    }

    /// Visits the elements of a slice in order, those ahead being fetched.
    #[inline]
    pub(crate) fn each_of_slice<'s, T: MallocSizeOf>(
        &self,
        slice: &'s [T],
        mut visit: impl FnMut(&'s T),
    ) {
        if T::owns_nothing() {
            return;
        }
        // A few have been fetched from afar.
        let (Some(next), Some(soon)) = (slice.get(AHEAD..), slice.get(BEHIND..)) else {
            return slice.iter().for_each(visit);
        };
        let Some(ahead) = self.lookahead().filter(|_| core::mem::needs_drop::<T>()) else {
            return slice.iter().for_each(visit);
        };
        slice.iter().take(AHEAD).for_each(|element| element.prefetch(ahead));
        let _visiting = self.visits_fetched();
        for ((element, next), soon) in slice.iter().zip(next).zip(soon) {
            next.prefetch(ahead);
            soon.prefetch_behind(ahead);
            visit(element);
            self.keep_up();
        }
        slice.iter().skip(next.len()).for_each(visit);
    }

    /// Visits what an iterator yields in order, those ahead being fetched.
    #[inline]
    pub(crate) fn each_ahead<T: Copy + Ahead>(
        &self,
        items: impl Iterator<Item = T>,
        mut visit: impl FnMut(T),
    ) {
        let are_few = items.size_hint().1.is_some_and(|items| items <= FEW);
        let Some(ahead) = self.lookahead().filter(|_| !are_few && !T::owns_nothing()) else {
            return items.for_each(visit);
        };
        let _visiting = self.visits_fetched();
        let mut waiting: [Option<T>; AHEAD] = [None; AHEAD];
        let mut next = 0;
        items.for_each(|item| {
            if let Some(come) = waiting[(next + AHEAD - COME) % AHEAD] {
                come.prefetch(ahead);
            }
            if let Some(soon) = waiting[(next + AHEAD - COME - BEHIND) % AHEAD] {
                soon.prefetch_behind(ahead);
            }
            if let Some(due) = waiting[next].replace(item) {
                visit(due);
                self.keep_up();
            }
            next = (next + 1) % AHEAD;
        });
        waiting.rotate_left(next);
        visit_rest(&waiting, &mut visit);
    }

    /// How to look ahead; `None` where nobody is asked.
    #[inline]
    fn lookahead(&self) -> Option<Lookahead<'_>> {
        match self.collection.sizes {
            SizeSource::Layout => None,
            SizeSource::Allocator(_) => Some(Lookahead { table: None, waits: false }),
            SizeSource::Table(table) => Some(Lookahead { table: Some(table), waits: false }),
        }
    }
}

/// An item of an iterator: an element, or an entry.
pub(crate) trait Ahead {
    fn owns_nothing() -> bool;
    fn prefetch(self, ahead: Lookahead<'_>);
    fn prefetch_behind(self, ahead: Lookahead<'_>);
}

impl<T: MallocSizeOf> Ahead for &T {
    #[inline]
    fn owns_nothing() -> bool {
        T::owns_nothing()
    }

    #[inline]
    fn prefetch(self, ahead: Lookahead<'_>) {
        T::prefetch(self, ahead);
    }

    #[inline]
    fn prefetch_behind(self, ahead: Lookahead<'_>) {
        T::prefetch_behind(self, ahead);
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf> Ahead for (&K, &V) {
    #[inline]
    fn owns_nothing() -> bool {
        K::owns_nothing() && V::owns_nothing()
    }

    #[inline]
    fn prefetch(self, ahead: Lookahead<'_>) {
        self.0.prefetch(ahead);
        self.1.prefetch(ahead);
    }

    #[inline]
    fn prefetch_behind(self, ahead: Lookahead<'_>) {
        self.0.prefetch_behind(ahead);
        self.1.prefetch_behind(ahead);
    }
}

/// For generated code: fetches for a field of any type, and does nothing where nobody knows how it is measured. That is an error,
/// but it is shown once, at the field.
#[derive(Debug)]
pub struct Fetch<'v, T: ?Sized>(pub &'v T);

/// See [`Fetch`].
pub trait FetchMeasurable {
    /// As [`MallocSizeOf::prefetch`].
    fn fetch(&self, ahead: Lookahead<'_>);
    /// As [`MallocSizeOf::prefetch_behind`].
    fn fetch_behind(&self, ahead: Lookahead<'_>);
}

impl<T: ?Sized + MallocSizeOf> FetchMeasurable for Fetch<'_, T> {
    #[inline]
    fn fetch(&self, ahead: Lookahead<'_>) {
        self.0.prefetch(ahead);
    }

    #[inline]
    fn fetch_behind(&self, ahead: Lookahead<'_>) {
        self.0.prefetch_behind(ahead);
    }
}

/// See [`Fetch`]. Takes a reference more, so that the other trait comes first.
pub trait FetchAny {
    /// Nothing.
    fn fetch(&self, _ahead: Lookahead<'_>) {}
    /// Nothing.
    fn fetch_behind(&self, _ahead: Lookahead<'_>) {}
}

impl<T: ?Sized> FetchAny for &Fetch<'_, T> {}

/// Apart, so that the loop has the visit to itself, and takes it in.
#[cold]
#[inline(never)]
fn visit_rest<T: Copy>(waiting: &[Option<T>], visit: &mut dyn FnMut(T)) {
    waiting.iter().flatten().for_each(|due| visit(*due));
}

/// What lies before a block, where allocators keep its size; as it is mostly the same line, the beginning of the block too.
#[inline]
fn header(start: *const u8) -> *const u8 {
    start.wrapping_sub(size_of::<[usize; 2]>())
}

/// Has the line of memory at this address fetched, whatever it is the address of.
#[inline]
fn fetch(address: *const u8) {
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: a fetch reads nothing, and of an address that is not mapped it does nothing.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(not(miri), target_arch = "aarch64"))]
    // SAFETY: as on the other processor.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(readonly, nostack, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
