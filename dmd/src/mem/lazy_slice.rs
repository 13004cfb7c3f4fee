//! Slices in pages of their own that are mapped on first use and never unmapped.
#![expect(unsafe_code, reason = "returns references into its own mappings")]

use std::mem::size_of;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize as Counter;

use super::sync::Ordering::{AcqRel, Acquire, Relaxed};
use super::sync::{AtomicPtr, const_fn};
#[cfg(not(loom))]
use super::sys;

/// The address space mapped for slices, in bytes: a counter, so Relaxed. Untouched pages of it are
/// not resident.
static MAPPED: Counter = Counter::new(0);

/// Returns the address space that the tracker has mapped for its tables, in bytes.
pub(crate) fn mapped_bytes() -> usize {
    MAPPED.load(Relaxed)
}

/// A type that zeroed memory is a valid value of: integers, atomics, and arrays and structs of
/// them.
///
/// # Safety
///
/// All zeros is a valid value, and the type has no destructor.
pub(crate) unsafe trait Zeroed: 'static {
    /// Returns the value that all zeros stand for. Loom's atomics are not made of zeros.
    #[cfg(loom)]
    fn zero() -> Self;
}

macro_rules! zeroed {
    ($($type:ty = $zero:expr,)*) => {
        $(
            // SAFETY: zero is a valid integer, and an atomic has the representation of its integer.
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
    u8 = 0,
    u32 = 0,
    [u64; 2] = [0; 2],
    super::sync::AtomicU32 = super::sync::AtomicU32::new(0),
    super::sync::AtomicU64 = super::sync::AtomicU64::new(0),
    [super::sync::AtomicU64; 2] = [super::sync::AtomicU64::new(0), super::sync::AtomicU64::new(0)],
}

/// A zeroed slice that is mapped when it is first needed. Threads that race to map it agree on one.
pub(crate) struct LazySlice<T> {
    start: AtomicPtr<T>,
}

impl<T> LazySlice<T> {
    const_fn! {
        pub(crate) fn new() -> Self {
            LazySlice { start: AtomicPtr::new(std::ptr::null_mut()) }
        }
    }
}

impl<T: Zeroed + Sync> LazySlice<T> {
    /// Returns the slice, if it is mapped. `length` is the same in every call.
    #[inline]
    pub(crate) fn get(&self, length: usize) -> Option<&'static [T]> {
        // Acquire, with the Release of `publish`: the mapping is zeroed before its address is seen.
        let start = NonNull::new(self.start.load(Acquire))?;
        // SAFETY: `publish` stored a mapping of this length, which is never unmapped.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), length) })
    }

    /// Returns the slice, and maps it if necessary. Returns `None` when memory is short.
    #[inline]
    pub(crate) fn get_or_alloc(&self, length: usize) -> Option<&'static [T]> {
        self.get(length).or_else(|| self.alloc(length, map_zeroed))
    }

    /// Returns the slice, as [`get_or_alloc`](Self::get_or_alloc) does. It is used from end to end
    /// at random, as a hash table is, so it has huge pages if it is large and the kernel grants
    /// them.
    #[inline]
    pub(crate) fn get_or_alloc_dense(&self, length: usize) -> Option<&'static [T]> {
        self.get(length).or_else(|| self.alloc(length, map_zeroed_huge))
    }

    /// Returns the slice, as [`get_or_alloc`](Self::get_or_alloc) does. It starts at a huge page,
    /// if it fills some, and has them if `is_dense` returns `true` and the kernel grants them.
    #[inline]
    pub(crate) fn get_or_alloc_aligned(
        &self,
        length: usize,
        is_dense: impl Fn() -> bool,
    ) -> Option<&'static [T]> {
        let map = |length| map_zeroed_aligned(length, is_dense());
        self.get(length).or_else(|| self.alloc(length, map))
    }

    /// Returns whether the slice is mapped.
    pub(crate) fn is_mapped(&self) -> bool {
        !self.start.load(Relaxed).is_null()
    }

    #[cold]
    fn alloc(
        &self,
        length: usize,
        map: impl Fn(usize) -> Option<NonNull<T>>,
    ) -> Option<&'static [T]> {
        let start = map(length)?;
        if self.publish(start) {
            MAPPED.fetch_add(length * size_of::<T>(), Relaxed);
        } else {
            // SAFETY: another thread published first, so no reference into this mapping exists.
            unsafe { unmap_zeroed(start, length) };
        }
        self.get(length)
    }

    /// Publishes a mapping. Returns whether this thread is the first to do so.
    fn publish(&self, slice: NonNull<T>) -> bool {
        // AcqRel: the Release is the partner of the Acquire in `get`.
        let exchanged =
            self.start.compare_exchange(std::ptr::null_mut(), slice.as_ptr(), AcqRel, Acquire);
        exchanged.is_ok()
    }
}

/// Maps this many zeroed elements.
#[cfg(not(loom))]
fn map_zeroed<T: Zeroed>(length: usize) -> Option<NonNull<T>> {
    Some(sys::map(length.checked_mul(size_of::<T>())?)?.cast())
}

/// Maps this many zeroed elements, in huge pages if they fill some.
#[cfg(not(loom))]
fn map_zeroed_huge<T: Zeroed>(length: usize) -> Option<NonNull<T>> {
    Some(sys::map_huge(length.checked_mul(size_of::<T>())?)?.cast())
}

/// Maps this many zeroed elements, at the start of a huge page if they fill some.
#[cfg(not(loom))]
fn map_zeroed_aligned<T: Zeroed>(length: usize, prefers_huge: bool) -> Option<NonNull<T>> {
    Some(sys::map_aligned(length.checked_mul(size_of::<T>())?, prefers_huge)?.cast())
}

#[cfg(loom)]
fn map_zeroed_aligned<T: Zeroed>(length: usize, _: bool) -> Option<NonNull<T>> {
    map_zeroed(length)
}

#[cfg(loom)]
use map_zeroed as map_zeroed_huge;

/// # Safety
///
/// `start` comes from [`map_zeroed`], [`map_zeroed_huge`] or [`map_zeroed_aligned`] with this
/// length, and is no longer used.
#[cfg(not(loom))]
unsafe fn unmap_zeroed<T>(start: NonNull<T>, length: usize) {
    // SAFETY: by this function's contract the range is one whole mapping, no longer used.
    unsafe { sys::unmap(start.cast(), length * size_of::<T>()) };
}

/// Allocates elements one by one, so that loom tracks their atomics.
#[cfg(loom)]
fn map_zeroed<T: Zeroed>(length: usize) -> Option<NonNull<T>> {
    let zeros: Box<[T]> = (0..length).map(|_| T::zero()).collect();
    NonNull::new(Box::leak(zeros).as_mut_ptr())
}

#[cfg(loom)]
unsafe fn unmap_zeroed<T>(_start: NonNull<T>, _length: usize) {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn threads_that_need_a_slice_at_once_get_the_same() {
        static LAZY: LazySlice<AtomicU64> = LazySlice::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| LAZY.get_or_alloc(1000).unwrap()[999].fetch_add(1, Relaxed));
            }
        });
        assert_eq!(LAZY.get(1000).unwrap()[999].load(Relaxed), 4);
    }
}
