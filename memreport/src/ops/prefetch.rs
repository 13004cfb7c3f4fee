//! Looking ahead: asking for the size of a block mostly waits for memory, so what comes next is fetched meanwhile.
//!
//! A fetch is a hint: it reads nothing, and may be of any address. Each question is still asked and answered before the call that
//! asks it returns.
#![expect(unsafe_code, reason = "fetches memory by an instruction of the processor")]

use super::Ops;
use crate::MallocSizeOf;
use crate::allocator::Sizes;

/// How many elements ahead the blocks of an element are fetched: as many as a processor can wait for at once.
const AHEAD: usize = 16;

/// How many elements ahead they have come, and what is behind them is fetched.
const BEHIND: usize = AHEAD / 2;

/// How many elements of a slice are fetched from afar.
const FEW: usize = 8;

impl Ops<'_> {
    /// Fetches what measuring this value will ask about first, where that is in memory.
    #[inline]
    pub fn prefetch<T: ?Sized + MallocSizeOf>(&self, value: &T) {
        if self.reads_headers() {
            value.prefetch();
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
        let (Some(ahead), Some(behind)) = (slice.get(AHEAD..), slice.get(BEHIND..)) else {
            return slice.iter().for_each(visit);
        };
        if !core::mem::needs_drop::<T>() || !self.reads_headers() {
            return slice.iter().for_each(visit);
        }
        slice.iter().take(AHEAD).for_each(T::prefetch);
        for ((element, ahead), behind) in slice.iter().zip(ahead).zip(behind) {
            ahead.prefetch();
            behind.prefetch_behind();
            visit(element);
        }
        slice.iter().skip(ahead.len()).for_each(visit);
    }

    /// Visits what an iterator yields in order, those ahead being fetched.
    #[inline]
    pub(crate) fn each_ahead<T: Copy + Ahead>(
        &self,
        items: impl Iterator<Item = T>,
        mut visit: impl FnMut(T),
    ) {
        let are_few = items.size_hint().1.is_some_and(|items| items <= FEW);
        if are_few || T::owns_nothing() || !self.reads_headers() {
            return items.for_each(visit);
        }
        let mut waiting: [Option<T>; AHEAD] = [None; AHEAD];
        let mut next = 0;
        items.for_each(|item| {
            item.prefetch();
            if let Some(ahead) = waiting[(next + AHEAD - BEHIND) % AHEAD] {
                ahead.prefetch_behind();
            }
            if let Some(due) = waiting[next].replace(item) {
                visit(due);
            }
            next = (next + 1) % AHEAD;
        });
        waiting.rotate_left(next);
        visit_rest(&waiting, &mut visit);
    }

    /// Whether the size of a block is asked of the allocator, which looks before the block.
    #[inline]
    fn reads_headers(&self) -> bool {
        matches!(self.collection.sizes, Sizes::Asked(_))
    }
}

/// An item of an iterator: an element, or an entry.
pub(crate) trait Ahead {
    fn owns_nothing() -> bool;
    fn prefetch(self);
    fn prefetch_behind(self);
}

impl<T: MallocSizeOf> Ahead for &T {
    #[inline]
    fn owns_nothing() -> bool {
        T::owns_nothing()
    }

    #[inline]
    fn prefetch(self) {
        T::prefetch(self);
    }

    #[inline]
    fn prefetch_behind(self) {
        T::prefetch_behind(self);
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf> Ahead for (&K, &V) {
    #[inline]
    fn owns_nothing() -> bool {
        K::owns_nothing() && V::owns_nothing()
    }

    #[inline]
    fn prefetch(self) {
        self.0.prefetch();
        self.1.prefetch();
    }

    #[inline]
    fn prefetch_behind(self) {
        self.0.prefetch_behind();
        self.1.prefetch_behind();
    }
}

/// Fetches the first few elements of a slice, which has been fetched itself.
#[inline]
pub(crate) fn fetch_few<T: MallocSizeOf>(slice: &[T]) {
    if core::mem::needs_drop::<T>() {
        slice.iter().take(FEW).for_each(T::prefetch);
    }
}

/// For generated code: fetches for a field of any type, and does nothing where nobody knows how it is measured. That is an error,
/// but it is shown once, at the field.
#[derive(Debug)]
pub struct Fetch<'v, T: ?Sized>(pub &'v T);

/// See [`Fetch`].
pub trait FetchMeasurable {
    /// As [`MallocSizeOf::prefetch`].
    fn fetch(&self);
    /// As [`MallocSizeOf::prefetch_behind`].
    fn fetch_behind(&self);
}

impl<T: ?Sized + MallocSizeOf> FetchMeasurable for Fetch<'_, T> {
    #[inline]
    fn fetch(&self) {
        self.0.prefetch();
    }

    #[inline]
    fn fetch_behind(&self) {
        self.0.prefetch_behind();
    }
}

/// See [`Fetch`]. Takes a reference more, so that the other trait comes first.
pub trait FetchAny {
    /// Nothing.
    fn fetch(&self) {}
    /// Nothing.
    fn fetch_behind(&self) {}
}

impl<T: ?Sized> FetchAny for &Fetch<'_, T> {}

/// Apart, so that the loop has the visit to itself, and takes it in.
#[cold]
#[inline(never)]
fn visit_rest<T: Copy>(waiting: &[Option<T>], visit: &mut dyn FnMut(T)) {
    waiting.iter().flatten().for_each(|due| visit(*due));
}

/// Fetches what lies before a block, where allocators keep its size, and as it is mostly the same line, the beginning of the block.
#[inline]
pub(crate) fn fetch_header<T: ?Sized>(start: *const T) {
    let header = start.cast::<u8>().wrapping_sub(size_of::<[usize; 2]>());
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: a fetch reads nothing, and of an address that is not mapped it does nothing.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(header.cast());
    }
    #[cfg(all(not(miri), target_arch = "aarch64"))]
    // SAFETY: as on the other processor.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) header, options(readonly, nostack, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = header;
}
