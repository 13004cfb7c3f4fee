//! Writes head and contents of blocks in batches, without reading them in user space.
//!
//! A batch runs in the forked child. It calls the kernel and allocates nothing. Memory that cannot
//! be read is an error of the call, not a fault of the process.
#![expect(unsafe_code, reason = "writes memory that it does not own")]
#![expect(clippy::cast_possible_wrap, reason = "sizes of files")]

use std::ffi::c_int;
use std::io;
use std::mem::size_of;

use crate::mem::pages::PageList;
use crate::table::blocks::{Blocks, Granule, LiveBlock};

/// The words before the contents of a block: address, packed word, requested and usable bytes,
/// time, bytes of contents.
pub(super) const HEAD: usize = 6;

/// The bytes of contents in the head of a block that cannot be read.
pub(super) const UNREADABLE: u64 = u64::MAX;

/// The number of blocks that one call writes: the kernel takes at most 1024 pieces.
const BATCH: usize = 512;

/// The longest piece that is written by one call, in bytes. The kernel takes at most 2 GiB.
pub(super) const MAX_LENGTH: usize = if cfg!(test) { 1 << 16 } else { 1 << 30 };

/// The buffers of the child, which are allocated before the fork.
pub(super) struct Batch {
    descriptor: c_int,
    /// The heads of the blocks of one call.
    heads: PageList<[u64; HEAD]>,
    /// Head and contents of each block in turn.
    pieces: PageList<Piece>,
    /// The position in the file, in bytes.
    position: u64,
    failed: bool,
}

/// A piece of memory to write, with the layout of C's `iovec`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Piece {
    start: usize,
    length: usize,
}

const _: () = assert!(size_of::<Piece>() == size_of::<libc::iovec>());

impl Batch {
    pub(super) fn new(descriptor: c_int) -> io::Result<Self> {
        let mut batch = Batch {
            descriptor,
            heads: PageList::new(),
            pieces: PageList::new(),
            position: 0,
            failed: false,
        };
        // Fills the lists once, so that their pages are mapped before the fork.
        for _ in 0..BATCH {
            let is_mapped = batch.heads.push([0; HEAD])
                && batch.pieces.push(Piece { start: 0, length: 0 })
                && batch.pieces.push(Piece { start: 0, length: 0 });
            if !is_mapped {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
        }
        batch.heads.truncate(0);
        batch.pieces.truncate(0);
        Ok(batch)
    }

    /// Writes the counters and all blocks, in the child. Returns whether that succeeded.
    pub(super) fn write_all(&mut self, blocks: &Blocks, granule: Granule) -> bool {
        let counters = memreport::heap_counters().unwrap_or_default();
        let sums = [counters.live_blocks(), counters.live_bytes()];
        let sums = Piece { start: sums.as_ptr().addr(), length: size_of_val(&sums) };
        self.failed |= !self.write(&[sums]);
        blocks.for_each(granule, |found| self.add(found));
        self.flush();
        !self.failed
    }

    fn add(&mut self, found: LiveBlock) {
        let LiveBlock { start: address, block, packed } = found;
        // Whole words of the requested size, as in Mozilla's dumps.
        let bytes = block.requested & !(size_of::<usize>() - 1);
        self.heads.push([
            address as u64,
            packed.word(),
            block.requested as u64,
            block.usable as u64,
            block.time,
            bytes as u64,
        ]);
        let index = self.heads.as_slice().len() - 1;
        let head = (&raw const self.heads.as_slice()[index]).addr();
        self.pieces.push(Piece { start: head, length: size_of::<[u64; HEAD]>() });
        self.pieces.push(Piece { start: address, length: bytes });
        if index + 1 == BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let pieces = std::mem::replace(&mut self.pieces, PageList::new());
        if !self.failed && !self.write(pieces.as_slice()) {
            self.write_one_by_one(pieces.as_slice());
        }
        self.pieces = pieces;
        self.pieces.truncate(0);
        self.heads.truncate(0);
    }

    /// Writes the pieces of a batch singly: some are unreadable, or more than one call takes.
    fn write_one_by_one(&mut self, pieces: &[Piece]) {
        for (index, pair) in pieces.chunks_exact(2).enumerate() {
            let before = self.position;
            if self.write(&pair[..1]) && self.write_long(pair[1]) {
                continue;
            }
            self.position = before;
            if let Some(head) = self.heads.as_mut_slice().get_mut(index) {
                head[HEAD - 1] = UNREADABLE;
            }
            self.failed |= !self.write(&pair[..1]);
        }
    }

    /// Writes a piece that may be longer than one call takes.
    fn write_long(&mut self, mut piece: Piece) -> bool {
        while piece.length > MAX_LENGTH {
            if !self.write(&[Piece { length: MAX_LENGTH, ..piece }]) {
                return false;
            }
            piece = Piece { start: piece.start + MAX_LENGTH, length: piece.length - MAX_LENGTH };
        }
        self.write(&[piece])
    }

    /// Writes the pieces at the position. Returns whether all bytes were written.
    fn write(&mut self, pieces: &[Piece]) -> bool {
        let length: usize = pieces.iter().map(|piece| piece.length).sum();
        // SAFETY: the kernel checks each address, and returns an error where it cannot read.
        let written = unsafe {
            libc::pwritev(
                self.descriptor,
                pieces.as_ptr().cast(),
                pieces.len() as c_int,
                self.position as libc::off_t,
            )
        };
        let is_whole = usize::try_from(written) == Ok(length);
        if is_whole {
            self.position += length as u64;
        }
        is_whole
    }
}
