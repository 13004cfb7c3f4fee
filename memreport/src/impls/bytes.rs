//! Measures slices of shared memory, of `bytes`. *Exact with the tracker*; without it a *formula*:
//! the length of the slice. A slice that is a whole block is *exact* too where the allocator's size
//! classes tell its usable bytes, as jemalloc's do.
//!
//! With the tracker, the memory counts once for all slices of it, with the block that counts the
//! owners. If an empty slice is the last owner, only that block is counted.
#![expect(unsafe_code, reason = "vouches for the blocks that a handle keeps alive")]

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::{Bytes, BytesMut};

use crate::measure::ops::{Handle, SharedMemory};
use crate::tracker::words::words_of;
use crate::{Lookahead, MallocSizeOf, Ops};

impl MallocSizeOf for Bytes {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let (address, bytes) = (self.as_ptr().addr(), self.len());
        let memory = || SharedMemory { address, bytes, owners: owners_of(self) };
        match Owners::of(self) {
            Owners::Static => return,
            Owners::Tag if ops.whole_block(self.as_ptr(), bytes) => return,
            Owners::Pointer(counts) => {
                let handle = Handle { words: &words_of(self), counts };
                // SAFETY: the slice keeps the block alive that it points to.
                if unsafe { ops.memory_of_owners(handle, memory()) } {
                    return;
                }
            }
            Owners::Tag | Owners::Unknown => {}
        }
        add_handle(ops, self, memory(), [self.len(); 2]);
    }

    // Not inlined, here and below: a program's dev build would compile it itself, unoptimized.
    #[inline(never)]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        match Owners::of(self) {
            Owners::Static => {}
            Owners::Tag => ahead.supposed_block(self.as_ptr(), self.len()),
            Owners::Pointer(counts) => {
                ahead.words([self.as_ptr().addr(), counts].into_iter());
                // The block with the number of owners. It may lie in two lines.
                ahead.address(counts);
                ahead.address(counts.wrapping_add(2 * size_of::<usize>()));
            }
            Owners::Unknown => ahead.words(words_of(self)),
        }
    }
}

/// The word of a slice that leads to its owners.
enum Owners {
    /// Null: the slice is static, and owns nothing.
    Static,
    /// The block's start a second time, with the lowest bit set: one owner has all of the block.
    Tag,
    /// The block that counts the owners, or the memory itself, perhaps with the lowest bit set.
    Pointer(usize),
    /// It cannot be read, or its place is not known.
    Unknown,
}

impl Owners {
    #[inline]
    fn of(slice: &Bytes) -> Self {
        let start = slice.as_ptr().addr();
        match words_of(slice).nth(place_of_owners()) {
            None => Owners::Unknown,
            Some(0) => Owners::Static,
            Some(word) if word == start | 1 && word != start && !slice.is_empty() => Owners::Tag,
            Some(word) => Owners::Pointer(word),
        }
    }
}

/// Returns the place of the owners' word among those of a slice, or a place behind the last one if
/// it is not known.
#[inline]
fn place_of_owners() -> usize {
    /// The place, or `UNSET`.
    static PLACE: AtomicUsize = AtomicUsize::new(UNSET);
    const UNSET: usize = usize::MAX;

    // Relaxed: threads that come here at the same time find the same place.
    match PLACE.load(Relaxed) {
        UNSET => {
            let place = find_place_of_owners();
            PLACE.store(place, Relaxed);
            place
        }
        place => place,
    }
}

/// Finds the place in a static slice: the only word that is null.
#[cold]
fn find_place_of_owners() -> usize {
    static EXAMPLE: Bytes = Bytes::from_static(b"x");

    let mut nulls = words_of(&EXAMPLE).enumerate().filter(|(_, word)| *word == 0);
    match (nulls.next(), nulls.next()) {
        (Some((place, _)), None) => place,
        _ => size_of::<Bytes>(),
    }
}

/// Returns the number of a slice's owners, or `usize::MAX` if it has several.
fn owners_of(slice: &Bytes) -> usize {
    if slice.is_unique() { 1 } else { usize::MAX }
}

impl MallocSizeOf for BytesMut {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let (address, bytes) = (self.as_ptr().addr(), self.capacity());
        let memory = SharedMemory { address, bytes, owners: usize::MAX };
        add_handle(ops, self, memory, [self.len(), self.capacity()]);
    }

    #[inline(never)]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.words(words_of(self));
    }
}

/// Counts the blocks of a handle. Its words are the start of the slice, a pointer to the block that
/// counts the owners, pointers to functions, and these `sizes`.
fn add_handle<H>(ops: &Ops<'_>, handle: &H, memory: SharedMemory, sizes: [usize; 2]) {
    let is_start = |word| !sizes.contains(&word);
    // SAFETY: the pointer to the owners' block is the only one to the start of a block, since the
    // sizes are left out.
    unsafe { ops.shared_memory(&words_of(handle), is_start, memory) };
}
