//! The contents of all blocks at one instant: a forked child has the whole heap as it was, and writes it to a file.
//!
//! The child shares nothing that could be locked by a thread that it does not have: it reads the table of blocks, and calls
//! the kernel to write. The contents go from the block to the file without being touched, so that memory that cannot be read
//! is an error of the call and not of the process.
//!
//! The file has a record for each block: address, packed, requested and usable bytes, when it was made, and how many bytes of
//! contents follow.
#![expect(unsafe_code, reason = "forks, and writes memory that it does not own")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "words that were written as such; sizes of files"
)]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;

use crate::mem::pages::PageList;
use crate::table::blocks::{Blocks, Granule, LiveBlock};
use crate::table::packed_block::{Block, PackedBlock};

/// The heap at one instant, in a file without a name.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) file: File,
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
}

/// The words before the contents of a block: address, packed, requested and usable bytes, time, bytes of contents.
const HEAD: usize = 6;

/// Contents that could not be read.
const UNREADABLE: u64 = u64::MAX;

/// Blocks that are written by one call: the kernel takes at most 1,024 pieces.
const BATCH: usize = 512;

/// A block of the file, and where its contents are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrozenBlock {
    pub(crate) address: usize,
    pub(crate) packed: PackedBlock,
    pub(crate) block: Block,
    pub(crate) contents: Option<Place>,
}

/// Where the words of a block are in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Frozen {
    /// Freezes the heap.
    pub(crate) fn take(blocks: &'static Blocks, granule: Granule) -> io::Result<Frozen> {
        let file = nameless()?;
        let mut batch = Batch::new(file.as_raw_fd())?;
        fork(|| batch.write_all(blocks, granule))?;
        let mut frozen = Frozen { file, live_blocks: 0, live_bytes: 0 };
        let [blocks, bytes] = words(&mut &frozen.file)?;
        (frozen.live_blocks, frozen.live_bytes) = (blocks, bytes);
        Ok(frozen)
    }

    /// Hands every block to `visit`, in the order of their addresses.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(FrozenBlock)) -> io::Result<()> {
        let mut input = io::BufReader::with_capacity(1 << 16, &self.file);
        io::Seek::rewind(&mut input)?;
        let mut offset = size_of::<[u64; 2]>() as u64;
        let [..] = words::<2>(&mut input)?;
        while let Some([address, word, requested, usable, time, bytes]) = next_head(&mut input)? {
            offset += size_of::<[u64; HEAD]>() as u64;
            let contents = (bytes != UNREADABLE).then_some(Place { offset, bytes });
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

fn words<const N: usize>(input: &mut impl Read) -> io::Result<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes)?;
        *word = u64::from_ne_bytes(bytes);
    }
    Ok(words)
}

/// The head of the next block; `None` at the end.
fn next_head(input: &mut impl io::BufRead) -> io::Result<Option<[u64; HEAD]>> {
    if input.fill_buf()?.is_empty() { Ok(None) } else { words(input).map(Some) }
}

/// A file that is gone when it is closed. Its size is that of the heap, so it is on disk, where temporary files are.
fn nameless() -> io::Result<File> {
    let folder = std::env::temp_dir();
    nameless_in(&folder).map_err(|error| {
        let reason = format!("no file could be made in {} ($TMPDIR): {error}", folder.display());
        io::Error::new(error.kind(), reason)
    })
}

fn nameless_in(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        return Ok(file);
    }
    // Not every file system can do without a name.
    let name = folder.join(format!(
        "memreport-scan-{}-{:x}",
        std::process::id(),
        crate::mem::sys::thread_id()
    ));
    let file = options.create_new(true).open(&name)?;
    std::fs::remove_file(&name)?;
    Ok(file)
}

/// What the child needs: made before it is.
struct Batch {
    descriptor: c_int,
    /// The heads of the blocks of one call.
    heads: PageList<[u64; HEAD]>,
    /// Head and contents in turn.
    pieces: PageList<Piece>,
    position: u64,
    failed: bool,
}

/// What the kernel is to write: start and length, as in C's `iovec`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Piece {
    start: usize,
    length: usize,
}

const _: () = assert!(size_of::<Piece>() == size_of::<libc::iovec>());

impl Batch {
    fn new(descriptor: c_int) -> io::Result<Self> {
        let mut batch = Batch {
            descriptor,
            heads: PageList::new(),
            pieces: PageList::new(),
            position: 0,
            failed: false,
        };
        // The first values make the pages: the child finds them there.
        for _ in 0..BATCH {
            let made = batch.heads.push([0; HEAD])
                && batch.pieces.push(Piece { start: 0, length: 0 })
                && batch.pieces.push(Piece { start: 0, length: 0 });
            if !made {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
        }
        batch.heads.truncate(0);
        batch.pieces.truncate(0);
        Ok(batch)
    }

    /// In the child: writes the counters and all blocks. `false` if that failed.
    fn write_all(&mut self, blocks: &Blocks, granule: Granule) -> bool {
        let counters = memreport::heap_counters().unwrap_or_default();
        let sums = [counters.live_blocks(), counters.live_bytes()];
        self.write(&[Piece { start: sums.as_ptr().addr(), length: size_of_val(&sums) }]);
        blocks.for_each(granule, |found| self.add(found));
        self.flush();
        !self.failed
    }

    fn add(&mut self, found: LiveBlock) {
        let LiveBlock { start: address, block, packed } = found;
        // As in Mozilla's dumps: whole words of what was asked for.
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

    /// Something in there cannot be read, or is more than one call takes.
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

    /// Writes what one call may not take whole.
    fn write_long(&mut self, mut piece: Piece) -> bool {
        const MOST: usize = 1 << 30;
        while piece.length > MOST {
            if !self.write(&[Piece { length: MOST, ..piece }]) {
                return false;
            }
            piece = Piece { start: piece.start + MOST, length: piece.length - MOST };
        }
        self.write(&[piece])
    }

    /// Writes the pieces at the position, or says that it cannot.
    fn write(&mut self, pieces: &[Piece]) -> bool {
        let wanted: usize = pieces.iter().map(|piece| piece.length).sum();
        // SAFETY: the kernel reads what it may, and answers with an error where it may not.
        let written = unsafe {
            libc::pwritev(
                self.descriptor,
                pieces.as_ptr().cast(),
                pieces.len() as c_int,
                self.position as libc::off_t,
            )
        };
        let is_whole = usize::try_from(written) == Ok(wanted);
        if is_whole {
            self.position += wanted as u64;
        }
        is_whole
    }
}

/// Runs `work` in a copy of this process, which has this thread alone, and waits for it. The program sees nothing of it: the
/// child sends no signal when it ends, takes none, and runs no handler for forks.
fn fork(work: impl FnOnce() -> bool) -> io::Result<()> {
    let (mut all, mut before) =
        (MaybeUninit::<libc::sigset_t>::zeroed(), MaybeUninit::<libc::sigset_t>::zeroed());
    // SAFETY: a valid place for the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: sets that are filled in, and a place for the answer.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: without flags this is a fork; the order of the null arguments does not matter. The child calls the kernel, and
    // reads memory that no other process writes.
    let child = unsafe {
        libc::syscall(
            libc::SYS_clone,
            0,
            ptr::null::<u8>(),
            ptr::null::<u8>(),
            ptr::null::<u8>(),
            0,
        )
    };
    if child == 0 {
        let status = if work() { 0 } else { 1 };
        // SAFETY: ends the child at once, without the program's handlers at exit.
        unsafe { libc::_exit(status) };
    }
    let error = io::Error::last_os_error();
    let result = if child < 0 { Err(error) } else { wait_for(child as libc::pid_t) };
    // SAFETY: the mask that was asked for above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

fn wait_for(child: libc::pid_t) -> io::Result<()> {
    let mut status = 0;
    loop {
        // SAFETY: a valid place for the answer. A child without an exit signal is waited for with this flag.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) };
        if ended == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    match status {
        0 => Ok(()),
        _ if libc::WIFEXITED(status) => Err(io::Error::other(
            "the contents of the heap could not be written; is there room among the temporary files?",
        )),
        _ => Err(io::Error::other("the process that was to read the heap has crashed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;
    use crate::table::epoch::Epoch;
    use std::os::unix::fs::FileExt;

    const GLIBC: Granule = Granule::of_spacing(32);

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
    fn the_contents_of_blocks_are_read_as_they_are() {
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
    fn memory_that_cannot_be_read_is_left_out() {
        let data = vec![7_u64; 100];
        let start = data.as_ptr().addr();
        let (_, found) = frozen(&[(4096, 64), (start, 800)]);
        assert!(found[0].contents.is_none());
        assert_eq!(found[1].contents.unwrap().bytes, 800);
    }

    #[test]
    fn more_blocks_than_one_call_takes() {
        let data = vec![1_u8; 64 * 2000];
        let start = data.as_ptr().addr().next_multiple_of(32);
        let blocks: Vec<_> = (0..1900).map(|index| (start + index * 64, 40)).collect();
        let (_, found) = frozen(&blocks);
        let found: Vec<_> =
            found.iter().map(|block| (block.address, block.block.requested)).collect();
        assert_eq!(found, blocks);
    }
}
