//! Prefetches the memory of blocks whose sizes are queried soon.
//!
//! A prefetch is a hint. It reads nothing and accepts any address.
#![expect(unsafe_code, reason = "fetches memory by an instruction of the processor")]

use crate::tracker::Tracker;

/// The size of a cache line in bytes. Where lines are longer, some are prefetched twice.
pub(crate) const LINE: usize = 64;

/// Prefetches the memory that will be queried soon, by hints to the processor.
#[derive(Clone, Copy)]
pub struct Lookahead<'t> {
    /// The table that answers size queries. Without one, the allocator reads the word before the
    /// block.
    pub(crate) table: Option<&'t dyn Tracker>,
    /// True if pointees that the queue will prefetch are left out.
    pub(crate) defers_pointees: bool,
}

impl core::fmt::Debug for Lookahead<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Lookahead").field("by_table", &self.table.is_some()).finish()
    }
}

impl Lookahead<'_> {
    /// Prefetches for a size query of a block whose contents are not visited, such as a text's.
    #[inline]
    pub fn block<T: ?Sized>(self, start: *const T) {
        let start = start.cast::<u8>();
        match self.table {
            Some(table) => fetch(table.entry_address(start.addr())),
            None => fetch(header(start)),
        }
    }

    /// Prefetches for a size query of a block and for a visit to its first `bytes` bytes.
    #[inline]
    pub fn contents<T: ?Sized>(self, start: *const T, bytes: usize) {
        self.block(start);
        let start = start.cast::<u8>();
        if self.table.is_some() {
            fetch(start);
        }
        // The start is mostly in one line with the header.
        fetch(start.wrapping_add(bytes.saturating_sub(1)));
    }

    /// Prefetches for a value that is a block of its own. See [`contents`](Self::contents).
    #[inline]
    pub(crate) fn value<T: ?Sized>(self, value: &T) {
        self.contents(core::ptr::from_ref(value), size_of_val(value));
    }
}

/// Returns the address before a block, where allocators keep its size. The start of the block is
/// mostly in the same line.
#[inline]
fn header(start: *const u8) -> *const u8 {
    start.wrapping_sub(size_of::<[usize; 2]>())
}

/// Prefetches the cache line at this address, which may be any address.
#[inline]
pub(crate) fn fetch(address: *const u8) {
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: a prefetch reads nothing, and does nothing for an unmapped address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(not(miri), target_arch = "aarch64"))]
    // SAFETY: a prefetch, as on the other processor.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(readonly, nostack, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
