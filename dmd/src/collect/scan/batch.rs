//! Writes head and contents of blocks in batches, without reading them in user space.
//!
//! A batch runs in the forked child. It calls the kernel and allocates nothing. Memory that cannot
//! be read is an error of the call, not a fault of the process.
//!
//! Small blocks lie close together, and the kernel copies one long piece of memory several times
//! as fast as many short ones. So the few bytes between two blocks, such as an allocator's headers,
//! are written with them.
#![expect(clippy::cast_possible_truncation, reason = "sizes of blocks and of files")]

use std::ffi::c_int;
use std::io;
use std::mem::size_of;

use super::{BATCH, END_BYTES, Head, UNREADABLE, contents_of};
use crate::mem::pages::PageList;
use crate::mem::sys::{self, Piece};
use crate::table::blocks::{Blocks, Granule, LiveBlock};

/// The most pieces of a batch's contents: the kernel takes 1,024 in one call, with the two before.
const MAX_PIECES: usize = 1022;

/// The most bytes between the contents of two blocks that are written too. They are in pages of
/// these blocks, so they are readable where the blocks are.
const MAX_GAP: usize = 64;

/// The most bytes of a piece that is written by one call, and of the contents of a batch, unless
/// its first block is larger. The kernel takes at most 2 GiB.
pub(super) const MAX_LENGTH: usize = if cfg!(test) { 1 << 16 } else { 1 << 30 };

/// The bytes before the heads of a batch: the number of its heads, and the bytes of its contents.
const BEFORE_HEADS: u64 = size_of::<[u64; 2]>() as u64;

/// The buffers of the child, which are allocated before the fork.
pub(super) struct Batch {
    descriptor: c_int,
    /// The heads of the blocks, with the places of their contents in the contents of the batch.
    heads: PageList<Head>,
    /// Two places for what is before the contents, and the pieces of memory that are the contents.
    pieces: PageList<Piece>,
    /// The bytes of the contents.
    bytes: usize,
    /// The position in the file, in bytes.
    position: u64,
    failed: bool,
}

/// No piece, in the places before the contents.
const NO_PIECE: Piece = Piece { start: 0, length: 0 };

/// Returns values as a piece.
fn piece_of<T>(values: &[T]) -> Piece {
    Piece { start: values.as_ptr().addr(), length: size_of_val(values) }
}

/// Returns whether contents at this address are so close behind a piece that both are written as
/// one.
fn is_close(piece: Piece, address: usize) -> bool {
    address.checked_sub(piece.start + piece.length).is_some_and(|gap| gap <= MAX_GAP)
}

impl Batch {
    pub(super) fn new(descriptor: c_int) -> io::Result<Self> {
        let mut batch = Batch {
            descriptor,
            heads: PageList::new(),
            pieces: PageList::new(),
            bytes: 0,
            position: 0,
            failed: false,
        };
        // Fills the lists once, so that their pages are mapped before the fork.
        let is_mapped = (0..BATCH).all(|_| batch.heads.push(Head::default()))
            && (0..MAX_PIECES + 2).all(|_| batch.pieces.push(NO_PIECE));
        if !is_mapped {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        batch.clear();
        Ok(batch)
    }

    fn clear(&mut self) {
        self.heads.truncate(0);
        self.pieces.truncate(2);
        self.bytes = 0;
    }

    /// Writes all blocks, and at last their end at the beginning of the file, in the child. Returns
    /// whether that succeeded.
    pub(super) fn write_all(&mut self, blocks: &Blocks, granule: Granule) -> bool {
        self.position = END_BYTES;
        blocks.for_each(granule, |found| self.add(found));
        self.flush();
        // A batch of which a part is unreadable may leave bytes behind the last one.
        let end = [self.position];
        self.failed |= !self.write_whole(piece_of(&end), 0);
        !self.failed
    }

    fn add(&mut self, LiveBlock { start: address, block, packed }: LiveBlock) {
        let bytes = contents_of(block.requested as u64) as usize;
        let is_full = self.pieces.as_slice().len() == 2 + MAX_PIECES
            && !self.last_piece().is_some_and(|last| is_close(*last, address));
        let is_long = self.bytes + MAX_GAP + bytes > MAX_LENGTH && self.bytes > 0;
        if is_full || is_long || self.heads.as_slice().len() == BATCH {
            self.flush();
        }
        self.add_contents(address, bytes);
        let place = self.bytes - bytes;
        self.heads.push(Head {
            address: address as u64,
            word: packed.word(),
            requested: block.requested as u64,
            usable: block.usable as u64,
            time: block.time,
            contents: place as u64,
        });
    }

    /// Appends contents to the batch.
    fn add_contents(&mut self, address: usize, bytes: usize) {
        if let Some(last) = self.last_piece().filter(|last| is_close(**last, address)) {
            let more = address + bytes - (last.start + last.length);
            last.length += more;
            self.bytes += more;
        } else {
            self.pieces.push(Piece { start: address, length: bytes });
            self.bytes += bytes;
        }
    }

    /// Returns the last piece of the contents.
    fn last_piece(&mut self) -> Option<&mut Piece> {
        self.pieces.as_mut_slice().get_mut(2..).and_then(<[Piece]>::last_mut)
    }

    /// Writes the batch, and empties it.
    fn flush(&mut self) {
        let contents = self.position + BEFORE_HEADS + size_of_val(self.heads.as_slice()) as u64;
        for head in self.heads.as_mut_slice() {
            head.contents += contents;
        }
        if !self.failed && !self.write_at_once() {
            self.write_one_by_one(contents);
        }
        self.position = contents + self.bytes as u64;
        self.clear();
    }

    /// Writes the batch by one call. Returns whether that succeeded.
    fn write_at_once(&mut self) -> bool {
        let sums = self.sums();
        let mut pieces = std::mem::replace(&mut self.pieces, PageList::new());
        if let [first, second, ..] = pieces.as_mut_slice() {
            (*first, *second) = (piece_of(&sums), piece_of(self.heads.as_slice()));
        }
        let bytes: usize = pieces.as_slice().iter().map(|piece| piece.length).sum();
        let written = self.write(pieces.as_slice(), self.position);
        self.pieces = pieces;
        written == Ok(bytes)
    }

    /// Returns what is before the heads.
    fn sums(&self) -> [u64; 2] {
        [self.heads.as_slice().len() as u64, self.bytes as u64]
    }

    /// Writes the contents of a batch singly, from a position on: some are unreadable, or more than
    /// one call takes.
    fn write_one_by_one(&mut self, contents: u64) {
        self.bytes = 0;
        for index in 0..self.heads.as_slice().len() {
            let Head { address, requested, .. } = self.heads.as_slice()[index];
            let piece = Piece { start: address as usize, length: contents_of(requested) as usize };
            let place = contents + self.bytes as u64;
            let is_written = self.write_whole(piece, place);
            self.bytes += if is_written { piece.length } else { 0 };
            self.heads.as_mut_slice()[index].contents = if is_written { place } else { UNREADABLE };
        }
        let (sums, position) = (self.sums(), self.position);
        self.failed |= !self.write_whole(piece_of(&sums), position);
        let heads = piece_of(self.heads.as_slice());
        self.failed |= !self.write_whole(heads, position + BEFORE_HEADS);
    }

    /// Writes a piece, of which one call may take a part. Returns `false` if it cannot be read; any
    /// other error is the file's, and ends the scan.
    fn write_whole(&mut self, mut piece: Piece, mut position: u64) -> bool {
        while piece.length > 0 {
            let next = Piece { length: piece.length.min(MAX_LENGTH), ..piece };
            match self.write(&[next], position) {
                Ok(written) if written > 0 => {
                    piece = Piece { start: piece.start + written, length: piece.length - written };
                    position += written as u64;
                }
                Err(libc::EFAULT) => return false,
                _ => {
                    self.failed = true;
                    return false;
                }
            }
        }
        true
    }

    /// Writes the pieces at a position. Returns the bytes that were written; otherwise the number
    /// of the error.
    fn write(&self, pieces: &[Piece], position: u64) -> Result<usize, c_int> {
        let written = sys::write_pieces(self.descriptor, pieces, position);
        usize::try_from(written).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;
    use crate::table::epoch::Epoch;
    use crate::table::packed_block::{Block, PackedBlock};

    #[test]
    fn blocks_that_find_no_room_in_the_file_are_not_taken_for_unreadable_ones() {
        let words = [7_u64; 8];
        for (path, fails) in [("/dev/full", true), ("/dev/null", false)] {
            let file = File::options().write(true).open(path).unwrap();
            let mut batch = Batch::new(file.as_raw_fd()).unwrap();
            let (requested, site, rate) = (64, SiteId::UNKNOWN, SamplingRate::EVERY);
            let block = Block { requested, usable: 72, site, epoch: Epoch::FIRST, rate, time: 0 };
            let packed = PackedBlock::small(block, false).expect("it is small");
            batch.add(LiveBlock { start: words.as_ptr().addr(), block, packed });
            batch.flush();
            assert_eq!(batch.failed, fails, "{path}");
        }
    }
}
