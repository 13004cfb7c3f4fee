//! Pages from the kernel: mapping, growing, unmapping and prefetching them.
#![expect(unsafe_code, reason = "system calls")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use super::Current;
use super::errno::keeping_errno;
use super::system::System;
use crate::mem::sync::AtomicU64;

/// The smallest size of a page in bytes. Used for rounding only.
pub(crate) const PAGE: usize = Current::PAGE;

/// The size of a huge page in bytes. Smaller mappings get none: they would waste more than they
/// hold.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// The bits of an address of a process.
pub(crate) const ADDRESS_BITS: u32 = Current::ADDRESS_BITS;

/// The end of the address space of a process.
pub(crate) const ADDRESS_END: usize = 1 << ADDRESS_BITS;

/// Maps zeroed pages; returns `None` if the kernel has none left. A page becomes resident when it
/// is first touched.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    map_for(bytes, READ_AND_WRITE)
}

const READ_AND_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

fn map_for(bytes: usize, access: c_int) -> Option<NonNull<u8>> {
    #[cfg(test)]
    if shortage::is_here() {
        return None;
    }
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | Current::NO_RESERVE;
    let pages = keeping_errno(|| {
        // SAFETY: without `MAP_FIXED` the kernel chooses an unused range, so no mapping is
        // replaced.
        unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) }
    });
    if pages == libc::MAP_FAILED { None } else { NonNull::new(pages.cast()) }
}

/// Maps zeroed pages of which few will be touched, also where the program has the kernel lock all
/// pages in memory as soon as they are mapped (`mlockall`). Not for hooks: a filter of system calls
/// may end the process.
pub(crate) fn map_sparse(bytes: usize) -> Option<NonNull<u8>> {
    if !are_new_pages_locked() {
        return map(bytes);
    }
    // The kernel leaves out pages without access.
    let pages = map_for(bytes, libc::PROT_NONE)?;
    let start = pages.as_ptr().cast();
    // SAFETY: the mapping is new. If it stays locked, all its pages become resident.
    unsafe { libc::munlock(start, bytes) };
    // SAFETY: nothing has used the mapping yet.
    if unsafe { libc::mprotect(start, bytes, READ_AND_WRITE) } == 0 {
        return Some(pages);
    }
    // SAFETY: the whole mapping, of which there is no reference.
    unsafe { unmap(pages, bytes) };
    None
}

/// Returns whether new pages are resident before they are touched.
fn are_new_pages_locked() -> bool {
    if cfg!(miri) {
        return false;
    }
    let Some(page) = map(PAGE) else { return false };
    let mut is_resident = 0;
    // SAFETY: one page, and a place for it.
    let result = unsafe { libc::mincore(page.as_ptr().cast(), PAGE, &raw mut is_resident) };
    // SAFETY: the whole mapping, of which there is no reference.
    unsafe { unmap(page, PAGE) };
    result == 0 && is_resident & 1 != 0
}

/// Grows a mapping, and moves it if its neighbours are in the way. The new part is zeroed, and
/// backed by huge pages if the kernel grants them.
///
/// # Safety
///
/// `start` is the start of a mapping of [`map`] with this many bytes. If the mapping moves, the old
/// address is no longer used.
pub(crate) unsafe fn grow_mapping(
    start: NonNull<u8>,
    bytes: usize,
    longer: usize,
) -> Option<NonNull<u8>> {
    #[cfg(test)]
    if shortage::is_here() {
        return None;
    }
    // SAFETY: by this function's contract the range is one whole mapping, which the caller owns.
    let pages = keeping_errno(|| unsafe { Current::grow(start, bytes, longer) })?;
    prefer_huge_pages(pages, longer);
    Some(pages)
}

/// Maps zeroed pages for memory that is used from end to end: in huge pages if the kernel grants
/// them.
pub(crate) fn map_huge(bytes: usize) -> Option<NonNull<u8>> {
    let pages = map(bytes)?;
    prefer_huge_pages(pages, bytes);
    Some(pages)
}

/// Maps zeroed pages, as [`map`] does. They start at a huge page if they fill some, and are backed
/// by huge pages if these are preferred and the kernel grants them.
pub(crate) fn map_aligned(bytes: usize, prefers_huge: bool) -> Option<NonNull<u8>> {
    let pages = map(bytes)?;
    let is_start = |address: usize| address & (HUGE_PAGE - 1) == 0;
    let pages = if is_start(pages.addr().get()) || !is_start(bytes) {
        pages
    } else {
        // SAFETY: it is this mapping.
        unsafe { unmap(pages, bytes) };
        cut_aligned(map(bytes + HUGE_PAGE)?, bytes)
    };
    if prefers_huge {
        prefer_huge_pages(pages, bytes);
    }
    Some(pages)
}

/// Returns the part of a mapping that starts at a huge page and has so many bytes, and unmaps the
/// rest. The mapping has the bytes of one huge page more.
fn cut_aligned(longer: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    let start = longer.addr();
    let aligned = start.get().next_multiple_of(HUGE_PAGE);
    let before = aligned - start.get();
    let pages = longer.map_addr(|address| address.saturating_add(before));
    if before > 0 {
        // SAFETY: the first part of the mapping, which nothing has used yet.
        unsafe { unmap(longer, before) };
    }
    let rest = pages.map_addr(|address| address.saturating_add(bytes));
    // SAFETY: the last part.
    unsafe { unmap(rest, HUGE_PAGE - before) };
    pages
}

/// Returns whether all pages of these words are resident. Not for hooks: a filter of system calls
/// may end the process.
pub(crate) fn are_resident(words: &'static [AtomicU64]) -> bool {
    let mut pages = [0; HUGE_PAGE / PAGE];
    let bytes = size_of_val(words);
    if cfg!(any(miri, loom)) || bytes != HUGE_PAGE {
        return false;
    }
    let start = words.as_ptr().cast_mut().cast();
    // SAFETY: the words are in a mapping, and there is a place for each of their pages.
    let result = unsafe { libc::mincore(start, bytes, pages.as_mut_ptr()) };
    result == 0 && pages.iter().all(|page| page & 1 != 0)
}

/// Advises the kernel to back a mapping with huge pages. If it refuses, the pages stay small.
pub(crate) fn prefer_huge_pages(pages: NonNull<u8>, bytes: usize) {
    if bytes >= HUGE_PAGE && !cfg!(miri) {
        keeping_errno(|| Current::prefer_huge_pages(pages, bytes));
    }
}

/// Advises the kernel to make one huge page of the small ones from this address on, which is a
/// multiple of its size.
pub(crate) fn make_huge_page(pages: NonNull<u8>) {
    if !cfg!(miri) {
        Current::make_huge_pages(pages, HUGE_PAGE);
    }
}

/// Maps zeroed pages at this address. Returns `false` if the range is in use, or on failure.
pub(crate) fn map_at(address: usize, bytes: usize) -> bool {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | Current::IF_FREE;
    let wanted = ptr::with_exposed_provenance_mut::<c_void>(address);
    // SAFETY: without `MAP_FIXED` no mapping is replaced.
    let pages = unsafe { libc::mmap(wanted, bytes, READ_AND_WRITE, kind, -1, 0) };
    if pages != libc::MAP_FAILED && pages != wanted {
        // macOS and Linux before 4.17 take the address for a hint.
        // SAFETY: the range was mapped above, and no reference to it exists.
        unsafe { libc::munmap(pages, bytes) };
    }
    pages == wanted
}

/// Unmaps pages.
///
/// # Safety
///
/// The range is a mapping of [`map`] with this many bytes, or pages of one, and is no longer used.
pub(crate) unsafe fn unmap(pages: NonNull<u8>, bytes: usize) {
    // SAFETY: this function has the same contract.
    unsafe { libc::munmap(pages.as_ptr().cast(), bytes) };
}

/// Prefetches the cache line at this address to write to it: other processors drop their copies.
#[inline]
pub(crate) fn prefetch_to_write<T>(address: *const T) {
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: a prefetch is a hint: it reads no value, and ignores an unmapped address. Processors
    // without this one ignore it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(address.cast());
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    let _ = address;
}

/// Copies words to memory that nobody reads soon: past the caches where the processor can, so that
/// these keep what they have, and lines are not read before they are overwritten. Other threads may
/// see the words only after [`end_writes_past_caches`].
///
/// # Safety
///
/// `to` has room for the words, and is aligned to them.
#[inline]
pub(crate) unsafe fn write_past_caches(to: NonNull<u64>, words: &[Cell<u64>]) {
    // A loop of a known length has no counter.
    const CHUNK: usize = 8;
    let chunks = words.chunks_exact(CHUNK);
    let rest = chunks.remainder();
    let write = |index: usize, word: &Cell<u64>| {
        // SAFETY: there is room for all words.
        let place = unsafe { to.add(index) };
        #[cfg(all(not(miri), target_arch = "x86_64"))]
        // SAFETY: writable and aligned. Each processor of this architecture has the instruction.
        unsafe {
            std::arch::x86_64::_mm_stream_si64(place.as_ptr().cast(), word.get().cast_signed());
        }
        #[cfg(any(miri, not(target_arch = "x86_64")))]
        // SAFETY: writable and aligned.
        unsafe {
            place.write(word.get());
        }
    };
    let rest_begins = words.len() - rest.len();
    for (chunk, first) in chunks.zip((0..).step_by(CHUNK)) {
        (0..CHUNK).for_each(|index| write(first + index, &chunk[index]));
    }
    rest.iter().zip(rest_begins..).for_each(|(word, index)| write(index, word));
}

/// Lets other threads see what [`write_past_caches`] has written, as any other store.
#[inline]
pub(crate) fn end_writes_past_caches() {
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: each processor of this architecture has the instruction, which changes no value.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// A shortage of memory on one thread, for tests.
#[cfg(test)]
pub(crate) mod shortage {
    use std::cell::Cell;

    std::thread_local! {
        static IS_HERE: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_here() -> bool {
        IS_HERE.get()
    }

    /// Runs `work`, to which the kernel grants no pages.
    pub(crate) fn run<R>(work: impl FnOnce() -> R) -> R {
        IS_HERE.set(true);
        let result = work();
        IS_HERE.set(false);
        result
    }
}
