//! The tracker's own memory: straight from the system, so that no hook ever allocates through itself.
#![expect(unsafe_code, reason = "hands out references into its own mappings")]

use std::mem::size_of;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize as Counter;

use super::sync::Ordering::{AcqRel, Acquire, Relaxed};
use super::sync::{AtomicPtr, const_fn};
use super::sys;

/// Bytes of address space that the tracker has mapped for itself; what was never touched is not resident.
static MAPPED: Counter = Counter::new(0);

/// How much the tracker has mapped for itself, in bytes.
pub(crate) fn mapped() -> usize {
    MAPPED.load(Relaxed)
}

/// Memory that is all zeros and can be shared between threads: atomics, and arrays and structs of them.
///
/// # Safety
///
/// All zeros is a valid value, and the type has no destructor.
pub(crate) unsafe trait Zeroed: Sync + 'static {
    /// What all zeros stand for: loom's atomics are not made of zeros.
    #[cfg(loom)]
    fn zero() -> Self;
}

macro_rules! zeroed {
    ($($type:ty = $zero:expr,)*) => {
        $(
            // SAFETY: zero is a valid number, and atomics are as their numbers.
            unsafe impl Zeroed for $type {
                #[cfg(loom)]
                fn zero() -> Self {
                    $zero
                }
            }
        )*
    };
}

zeroed! {
    u32 = 0,
    [u64; 2] = [0; 2],
    super::sync::AtomicU32 = super::sync::AtomicU32::new(0),
    super::sync::AtomicU64 = super::sync::AtomicU64::new(0),
}

/// A place for a slice of zeros that is made when first needed. Threads that need it at once make it once.
pub(crate) struct Lazy<T> {
    start: AtomicPtr<T>,
}

impl<T: Zeroed> Lazy<T> {
    const_fn! {
        pub(crate) fn new() -> Self {
            Lazy { start: AtomicPtr::new(std::ptr::null_mut()) }
        }
    }

    /// The slice, if it was made. `length` is the same in every call.
    #[inline]
    pub(crate) fn get(&self, length: usize) -> Option<&'static [T]> {
        // Acquire, with the Release of `make`: the zeros of a mapping are there before its address is.
        let start = NonNull::new(self.start.load(Acquire))?;
        // SAFETY: published by `make` with this length, and never unmapped.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), length) })
    }

    /// The slice; made now if need be.
    #[inline]
    pub(crate) fn get_or_make(&self, length: usize) -> Option<&'static [T]> {
        self.get(length).or_else(|| self.make(length))
    }

    #[cold]
    fn make(&self, length: usize) -> Option<&'static [T]> {
        let fresh = fresh(length)?;
        if self.publish(fresh) {
            MAPPED.fetch_add(length * size_of::<T>(), Relaxed);
        } else {
            // SAFETY: another thread was first, and nobody has seen these.
            unsafe { give_back(fresh, length) };
        }
        self.get(length)
    }

    /// Whether this thread is the first.
    fn publish(&self, fresh: NonNull<T>) -> bool {
        let exchanged =
            self.start.compare_exchange(std::ptr::null_mut(), fresh.as_ptr(), AcqRel, Acquire);
        exchanged.is_ok()
    }
}

/// Zeros of the system's, for as long as the process runs.
#[cfg(not(loom))]
fn fresh<T: Zeroed>(length: usize) -> Option<NonNull<T>> {
    Some(sys::map(length.checked_mul(size_of::<T>())?)?.cast())
}

/// # Safety
///
/// They are [`fresh`], as many, and nobody uses them any more.
#[cfg(not(loom))]
unsafe fn give_back<T>(start: NonNull<T>, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { sys::unmap(start.cast(), length * size_of::<T>()) };
}

/// Zeros whose atomics loom knows.
#[cfg(loom)]
fn fresh<T: Zeroed>(length: usize) -> Option<NonNull<T>> {
    let zeros: Box<[T]> = (0..length).map(|_| T::zero()).collect();
    NonNull::new(Box::leak(zeros).as_mut_ptr())
}

#[cfg(loom)]
unsafe fn give_back<T>(_start: NonNull<T>, _length: usize) {}

/// How far ahead of a write its memory is fetched, in bytes.
const WRITE_AHEAD: usize = 512;

/// A list of plain values in pages of its own, for one thread.
#[derive(Debug)]
pub(crate) struct PageList<T> {
    pages: NonNull<u8>,
    capacity: usize,
    length: usize,
    /// Values that did not fit because memory was short.
    pub(crate) lost: usize,
    _values: std::marker::PhantomData<T>,
}

// SAFETY: it owns its pages, and the values are plain.
unsafe impl<T: Copy + Send> Send for PageList<T> {}
// SAFETY: a shared reference only reads them.
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
    /// With room for so many at first: address space, whose pages come as they are used.
    pub(crate) fn with_room(values: usize) -> Self {
        let mut list = Self::new();
        let bytes = values.saturating_mul(size_of::<T>());
        // In whole huge pages, where it is that much.
        let whole = bytes.checked_next_multiple_of(sys::HUGE).filter(|_| bytes >= sys::HUGE);
        let bytes = whole.unwrap_or(bytes);
        if let Some(pages) = sys::map_whole(bytes) {
            (list.pages, list.capacity) = (pages, bytes / size_of::<T>().max(1));
        }
        list
    }

    /// As [`push`](Self::push), of one of many: what is written next is fetched, as each write would wait for its line.
    #[inline]
    pub(crate) fn push_one_of_many(&mut self, value: T) -> bool {
        sys::fetch(self.start().wrapping_add(self.length).wrapping_byte_add(WRITE_AHEAD));
        self.push(value)
    }

    /// Adds a value at the end; `false`, and counted as lost, when memory is short.
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.length == self.capacity && self.grow().is_none() {
            self.lost += 1;
            return false;
        }
        // SAFETY: below the capacity, so inside the mapping.
        let place = unsafe { self.pages.cast::<T>().add(self.length) };
        // SAFETY: valid for writes, and aligned to pages.
        unsafe { place.write(value) };
        self.length += 1;
        true
    }

    /// Adds all of these or none; `false`, and one counted as lost, when memory is short.
    pub(crate) fn push_all(&mut self, values: &[T]) -> bool {
        while self.capacity - self.length < values.len() {
            if self.grow().is_none() {
                self.lost += 1;
                return false;
            }
        }
        values.iter().all(|value| self.push(*value))
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: that many values were written; of an empty list the start is dangling but aligned.
        unsafe { std::slice::from_raw_parts(self.start(), self.length) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and the list is borrowed mutably.
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
        let capacity = (self.capacity * 2).max((64 * sys::PAGE) / size_of::<T>().max(1));
        let (before, after) = (self.capacity * size_of::<T>(), capacity * size_of::<T>());
        self.pages = if self.capacity == 0 {
            sys::map(after)?
        } else {
            // SAFETY: the list's own mapping, and nothing of the list is lent while it is borrowed mutably.
            unsafe { sys::lengthen(self.pages, before, after) }?
        };
        self.capacity = capacity;
        Some(())
    }
}

impl<T: Copy + Zeroed> PageList<T> {
    /// That many zeros. `None` when memory is short.
    pub(crate) fn zeros(length: usize) -> Option<Self> {
        let mut list = Self::new();
        if length == 0 {
            return Some(list);
        }
        let pages = sys::map_whole(length.checked_mul(size_of::<T>())?)?;
        (list.pages, list.capacity, list.length) = (pages, length, length);
        Some(list)
    }
}

impl<T> PageList<T> {
    /// Gives the pages back. To be followed by new ones, or by the list's end.
    fn release(&mut self) {
        if self.capacity > 0 {
            // SAFETY: mapped by `grow` with this size, and not used after this.
            unsafe { sys::unmap(self.pages, self.capacity * size_of::<T>()) };
        }
    }
}

impl<T> Drop for PageList<T> {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_list_keeps_its_values_when_it_grows() {
        let mut list = PageList::new();
        assert!(list.as_slice().is_empty());
        for value in 0..200_000_u64 {
            list.push(value);
        }
        assert!(list.as_slice().iter().copied().eq(0..200_000));
        list.truncate(3);
        list.push(7);
        assert_eq!(list.as_mut_slice(), [0, 1, 2, 7]);
    }

    #[test]
    fn threads_that_need_a_slice_at_once_get_the_same() {
        static LAZY: Lazy<AtomicU64> = Lazy::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| LAZY.get_or_make(1000).unwrap()[999].fetch_add(1, Relaxed));
            }
        });
        assert_eq!(LAZY.get(1000).unwrap()[999].load(Relaxed), 4);
    }
}
