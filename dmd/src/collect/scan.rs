//! The contents of all blocks at one instant: a forked child writes its copy of the heap to a file.
//!
//! The child has only this thread, so it must not wait for a lock. It reads the table of blocks,
//! which has none, and calls the kernel to write (`batch`). `fork` makes the child. The blocks of
//! the file that a dump contains are in a `list`, whose numbers are in `base_128`.
//!
//! The file has a record for each block: address, packed word, requested and usable bytes, time,
//! the number of bytes of contents, then the contents.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "words that were written as such; sizes of files"
)]

pub(crate) mod base_128;
pub(crate) mod list;
mod batch;
mod fork;

use std::fs::File;
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::path::Path;

use memreport::__private::PrivateFile;

use self::batch::{Batch, HEAD, UNREADABLE};
use crate::mem::sys;
use crate::table::blocks::{Blocks, Granule};
use crate::table::packed_block::{Block, PackedBlock};

/// The heap at one instant, in an unnamed file.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) file: File,
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
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
        let file = unnamed_file()?;
        let mut batch = Batch::new(file.as_raw_fd())?;
        fork::fork(|| batch.write_all(blocks, granule))?;
        let mut frozen = Frozen { file, live_blocks: 0, live_bytes: 0 };
        let [blocks, bytes] = words(&mut &frozen.file)?;
        (frozen.live_blocks, frozen.live_bytes) = (blocks, bytes);
        Ok(frozen)
    }

    /// Calls `visit` with each block, in the order of their addresses.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(FrozenBlock)) -> io::Result<()> {
        let mut input = io::BufReader::with_capacity(1 << 16, &self.file);
        io::Seek::rewind(&mut input)?;
        let mut offset = size_of::<[u64; 2]>() as u64;
        let [..] = words::<2>(&mut input)?;
        while let Some([address, word, requested, usable, time, bytes]) = next_head(&mut input)? {
            offset += size_of::<[u64; HEAD]>() as u64;
            let contents = (bytes != UNREADABLE).then_some(ContentsRange { offset, bytes });
            let length = contents.map_or(0, |contents| contents.bytes);
            input.seek_relative(length as i64)?;
            offset += length;
            let packed = PackedBlock::from_word(word)
                .ok_or_else(|| io::Error::other("the file of contents is damaged"))?;
            let (requested, usable) = (requested as usize, usable as usize);
            let (site, epoch, rate) = (packed.site(), packed.epoch(), packed.rate());
            let block = Block { requested, usable, site, epoch, rate, time };
            visit(FrozenBlock { address: address as usize, packed, block, contents });
        }
        Ok(())
    }
}

/// Reads words as the child wrote them.
fn words<const N: usize>(input: &mut impl Read) -> io::Result<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes)?;
        *word = u64::from_ne_bytes(bytes);
    }
    Ok(words)
}

/// Reads the head of the next block; `None` at the end.
fn next_head(input: &mut impl io::BufRead) -> io::Result<Option<[u64; HEAD]>> {
    if input.fill_buf()?.is_empty() { Ok(None) } else { words(input).map(Some) }
}

/// Creates a file that is deleted when it is closed. It can be as big as the heap, so it is in the
/// folder for temporary files, on disk.
fn unnamed_file() -> io::Result<File> {
    let folder = sys::temporary_folder();
    unnamed_file_in(&folder).map_err(|error| {
        let reason = format!("no file could be made in {} ($TMPDIR): {error}", folder.display());
        io::Error::new(error.kind(), reason)
    })
}

fn unnamed_file_in(folder: &Path) -> io::Result<File> {
    // Some systems and file systems need a name.
    sys::unnamed_file_in(folder)
        .or_else(|_| Ok(PrivateFile::create(&folder.join("memreport-scan"))?.without_name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;
    use crate::table::epoch::Epoch;
    use std::os::unix::fs::FileExt;

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
    fn blocks_of_several_batches_are_read() {
        let data = vec![1_u8; 64 * 2000];
        let start = data.as_ptr().addr().next_multiple_of(32);
        let blocks: Vec<_> = (0..1900).map(|index| (start + index * 64, 40)).collect();
        let (_, found) = frozen(&blocks);
        let found: Vec<_> =
            found.iter().map(|block| (block.address, block.block.requested)).collect();
        assert_eq!(found, blocks);
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
