//! The contents of all blocks at one instant: a forked child writes its copy of the heap to a file.
//!
//! The child has only this thread, so it must not wait for a lock. It reads the table of blocks,
//! which has none, and calls the kernel to write (`batch`). `fork` makes the child. The blocks of
//! the file that a dump contains are in a `list`, whose numbers are in `base_128`.
//!
//! The file begins with the position of its end. Then come batches: the number of blocks, the bytes
//! of their contents, a head for each block, and the contents, which may have bytes between them
//! that belong to none. The heads are read alone.
#![expect(clippy::cast_possible_truncation, reason = "words that were written as such")]

pub(crate) mod base_128;
pub(crate) mod list;
mod batch;
mod fork;

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use memreport::__private::{temporary_folder, unnamed_file};

use self::batch::Batch;
use crate::mem::pages::PageList;
use crate::table::blocks::{Blocks, Granule};
use crate::table::packed_block::{Block, PackedBlock};

/// The heap at one instant, in an unnamed file.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) file: File,
    /// The end of the last batch. Bytes behind it belong to no block.
    end: u64,
}

/// A block of the file, and the place of its contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrozenBlock {
    pub(crate) address: usize,
    pub(crate) packed: PackedBlock,
    pub(crate) block: Block,
    /// `None` if the contents could not be read.
    pub(crate) contents: Option<ContentsRange>,
}

/// The place of a block's contents in the file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentsRange {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Frozen {
    /// Freezes the heap: a forked child writes all blocks to a file.
    ///
    /// # Errors
    ///
    /// If the file or the child cannot be made, or the file cannot be written.
    pub(crate) fn take(blocks: &'static Blocks, granule: Granule) -> io::Result<Frozen> {
        let file = file_of_contents()?;
        let mut batch = Batch::new(file.as_raw_fd())?;
        fork::fork(|| batch.write_all(blocks, granule))?;
        let [end] = words_at(&file, 0)?;
        Ok(Frozen { file, end })
    }

    /// Calls `visit` with each block, in the order of their addresses.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(FrozenBlock)) -> io::Result<()> {
        let mut heads =
            PageList::<u8>::zeros(BATCH * size_of::<Head>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut position = END_BYTES;
        while position < self.end {
            let [blocks, contents] = words_at(&self.file, position)?;
            position += size_of::<[u64; 2]>() as u64;
            let length =
                usize::try_from(blocks).ok().and_then(|n| n.checked_mul(size_of::<Head>()));
            let heads = length.and_then(|length| heads.as_mut_slice().get_mut(..length));
            let heads = heads.ok_or_else(damaged)?;
            self.file.read_exact_at(heads, position)?;
            let after = (position + heads.len() as u64).checked_add(contents);
            position = after.filter(|after| *after <= self.end).ok_or_else(damaged)?;
            for head in heads.chunks_exact(size_of::<Head>()) {
                visit(Head::from_bytes(head).block().ok_or_else(damaged)?);
            }
        }
        Ok(())
    }
}

/// A block in the file, before the contents of all blocks of its batch.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Head {
    address: u64,
    /// The packed block.
    word: u64,
    requested: u64,
    usable: u64,
    time: u64,
    /// The place of the contents in the file.
    contents: u64,
}

/// The bytes before the first batch: the end of the last one in the file.
const END_BYTES: u64 = size_of::<u64>() as u64;

/// The most blocks of a batch.
const BATCH: usize = 4096;

/// The place of contents that could not be read.
const UNREADABLE: u64 = u64::MAX;

/// Returns the bytes of a block's contents: whole words of the requested size, as in Mozilla's
/// dumps.
fn contents_of(requested: u64) -> u64 {
    requested & !(size_of::<usize>() as u64 - 1)
}

impl Head {
    /// Reads a head as the child wrote it.
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(size_of::<u64>()).map(word);
        let mut next = || words.next().unwrap_or(0);
        Head {
            address: next(),
            word: next(),
            requested: next(),
            usable: next(),
            time: next(),
            contents: next(),
        }
    }

    /// Returns the block; `None` if the head is damaged.
    fn block(self) -> Option<FrozenBlock> {
        let packed = PackedBlock::from_word(self.word)?;
        let (requested, usable) = (self.requested as usize, self.usable as usize);
        let (site, epoch, rate) = (packed.site(), packed.epoch(), packed.rate());
        let block = Block { requested, usable, site, epoch, rate, time: self.time };
        let range = ContentsRange { offset: self.contents, bytes: contents_of(self.requested) };
        let contents = (self.contents != UNREADABLE).then_some(range);
        Some(FrozenBlock { address: self.address as usize, packed, block, contents })
    }
}

/// Reads words as the child wrote them.
fn words_at<const N: usize>(file: &File, position: u64) -> io::Result<[u64; N]> {
    let mut bytes = [[0; size_of::<u64>()]; N];
    file.read_exact_at(bytes.as_flattened_mut(), position)?;
    Ok(bytes.map(u64::from_ne_bytes))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

fn damaged() -> io::Error {
    io::Error::other("the file of contents is damaged")
}

/// Creates a file that is deleted when it is closed. It can be as big as the heap, so it is in the
/// folder for temporary files, on disk.
fn file_of_contents() -> io::Result<File> {
    let folder = temporary_folder();
    unnamed_file(&folder, "memreport-scan").map_err(|error| {
        let reason = format!("no file could be made in {} ($TMPDIR): {error}", folder.display());
        io::Error::new(error.kind(), reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::sys;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;
    use crate::table::epoch::Epoch;

    const GLIBC: Granule = Granule::OF_32;

    fn frozen(blocks: &[(usize, usize)]) -> (Frozen, Vec<FrozenBlock>) {
        let table: &'static Blocks = Box::leak(Box::new(Blocks::new()));
        for (address, requested) in blocks {
            let (requested, usable) = (*requested, requested + 8);
            let (site, epoch) = (SiteId::from_number(3), Epoch::FIRST);
            table.insert(
                GLIBC,
                *address,
                Block { requested, usable, site, epoch, rate: SamplingRate::EVERY, time: 0 },
            );
        }
        let frozen = Frozen::take(table, GLIBC).unwrap();
        let mut found = Vec::new();
        frozen.for_each(|block| found.push(block)).unwrap();
        (frozen, found)
    }

    #[test]
    fn contents_are_read_unchanged() {
        let data: Vec<u64> = (0..4000).collect();
        let start = data.as_ptr().addr();
        let parts = [(start, 800), (start + 1024, 7), (start + 2048, 20_004)];
        let (frozen, found) = frozen(&parts);
        let lengths: Vec<_> = found.iter().map(|block| block.contents.unwrap().bytes).collect();
        assert_eq!(lengths, [800, 0, 20_000]);
        for (block, (address, requested)) in found.iter().zip(parts) {
            assert_eq!((block.address, block.block.requested), (address, requested));
            let contents = block.contents.unwrap();
            let mut bytes = vec![0; contents.bytes as usize];
            frozen.file.read_exact_at(&mut bytes, contents.offset).unwrap();
            let words =
                bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
            assert!(words.eq(data.iter().copied().skip((address - start) / 8).take(requested / 8)));
        }
    }

    #[test]
    fn unreadable_memory_has_no_contents() {
        let data = vec![7_u64; 100];
        let start = data.as_ptr().addr();
        let (_, found) = frozen(&[(4096, 64), (start, 800)]);
        assert!(found[0].contents.is_none());
        assert_eq!(found[1].contents.unwrap().bytes, 800);
    }

    #[test]
    fn the_last_block_may_be_unreadable() {
        let data = vec![7_u64; 1000];
        let start = data.as_ptr().addr();
        // Two that are written with the bytes between them, and one at the end of the addresses.
        let last = sys::ADDRESS_END - 16 * 4096;
        let (_, found) = frozen(&[(start, 800), (start + 864, 800), (last, 64)]);
        let lengths: Vec<_> =
            found.iter().map(|block| block.contents.map(|contents| contents.bytes)).collect();
        assert_eq!(lengths, [Some(800), Some(800), None]);
    }

    #[test]
    fn blocks_of_several_batches_are_read() {
        let data: Vec<u64> = (0..32 * 6000).collect();
        let start = data.as_ptr().addr().next_multiple_of(32);
        let first = (start - data.as_ptr().addr()) / 8;
        // Side by side, with a gap that is written too, and with one that is not.
        for distance in [32, 64, 256] {
            let blocks: Vec<_> =
                (0..5900).map(|index| (start + index * distance, 16 + index % 2 * 8)).collect();
            let (frozen, found) = frozen(&blocks);
            assert_eq!(found.len(), blocks.len());
            for (index, (found, (address, requested))) in found.iter().zip(blocks).enumerate() {
                assert_eq!((found.address, found.block.requested), (address, requested));
                let contents = found.contents.unwrap();
                assert_eq!(contents.bytes as usize, requested);
                let [word] = words_at(&frozen.file, contents.offset).unwrap();
                assert_eq!(word as usize, first + index * distance / 8);
            }
        }
    }

    #[test]
    fn contents_that_one_call_does_not_take_are_read_beside_unreadable_ones() {
        let length = 2 * batch::MAX_LENGTH / 8 + 5;
        let data: Vec<u64> = (0..length as u64).collect();
        let (frozen, found) = frozen(&[(4096, 64), (data.as_ptr().addr(), 8 * length)]);
        assert!(found[0].contents.is_none());
        let contents = found[1].contents.unwrap();
        let mut bytes = vec![0; contents.bytes as usize];
        frozen.file.read_exact_at(&mut bytes, contents.offset).unwrap();
        let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        assert!(words.eq(data));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let blocks = Box::new(Blocks::new());
        for (path, expected) in [("/dev/full", false), ("/dev/null", true)] {
            let file = File::options().write(true).open(path).unwrap();
            let mut batch = Batch::new(file.as_raw_fd()).unwrap();
            assert_eq!(batch.write_all(&blocks, GLIBC), expected, "{path}");
        }
    }
}
