//! What a dump keeps of the blocks of a scan while they are read.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;

use super::block_words::{BlockWords, FileWords};
use super::contents::{ContentsTable, WholeContents};
use super::scanned::{Scanned, ScannedBlock, WORD};
use crate::read::block::list::Numbers;
use crate::read::error::ReadError;
use crate::read::input::Input;
use crate::read::model::Dump;

/// The parts of a scan that a dump keeps.
pub(crate) enum Kept<'c> {
    /// Each block and its words.
    InMemory,
    /// Each block. Its words stay in the file, whose bytes are read here from its start.
    WordsInFile(FileWords),
    /// Each block. The words of a large scan are copied to a new file.
    WordsInCopy(NewFile<'c>),
    /// The sums of alike blocks, without addresses and words.
    Sums,
}

/// A function that makes an empty file.
pub(crate) type NewFile<'c> = &'c mut dyn FnMut() -> io::Result<File>;

/// Replaces the kinds of blocks, which the dump has so far, by `count` blocks. The first one begins
/// in the file at the offset `first`.
pub(crate) fn read(
    dump: &mut Dump,
    count: u64,
    input: &mut impl Input,
    kept: Kept<'_>,
    first: u64,
) -> Result<(), ReadError> {
    let kinds = std::mem::take(&mut dump.blocks);
    dump.blocks = kinds.without_blocks();
    let is_sums = matches!(kept, Kept::Sums);
    let mut words = KeptWords::new(kept, first);
    let mut blocks = Scanned::new(count, input);
    while let Some(block) = blocks.next()? {
        words.block(&block, &mut blocks)?;
        let ScannedBlock { address, req, slop, kind, .. } = block;
        let (kind, num) = kinds.kind_and_num(kind).ok_or_else(|| blocks.damaged())?;
        let numbers = Numbers { req, slop, addr: NonZeroU64::new(address) };
        match is_sums {
            true => dump.blocks.add_up(numbers, num, kind),
            false => dump.blocks.push(numbers, num, kind),
        }
    }
    (dump.words, dump.contents) = words.finish()?;
    Ok(())
}

/// The words of the blocks so far.
enum KeptWords<'c> {
    Copied { copy: Copy<'c>, places: WholeContents },
    InFile { file: FileWords, places: WholeContents },
    None,
}

impl<'c> KeptWords<'c> {
    fn new(kept: Kept<'c>, first: u64) -> Self {
        // In memory, words follow each other without heads, and places are their indices.
        let copied =
            |copy| KeptWords::Copied { copy: Copy::new(copy), places: WholeContents::new(0, 1) };
        match kept {
            Kept::InMemory => copied(None),
            Kept::WordsInCopy(file) => copied(Some(file)),
            Kept::WordsInFile(file) => {
                KeptWords::InFile { file, places: WholeContents::new(first, WORD) }
            }
            Kept::Sums => KeptWords::None,
        }
    }

    /// Reads the words of a block.
    fn block<I: Input>(
        &mut self,
        block: &ScannedBlock,
        blocks: &mut Scanned<'_, I>,
    ) -> Result<(), ReadError> {
        match self {
            KeptWords::Copied { copy, places } => {
                places.push(0, block.words);
                let mut left = block.words;
                while left > 0 {
                    let now = left.min(AT_ONCE as u64);
                    blocks.words(now, &mut copy.words)?;
                    copy.make_room().map_err(ReadError::Copy)?;
                    left -= now;
                }
                Ok(())
            }
            KeptWords::InFile { places, .. } => {
                places.push(block.head, block.words);
                blocks.skip_words(block)
            }
            KeptWords::None => blocks.skip_words(block),
        }
    }

    fn finish(self) -> Result<(BlockWords, ContentsTable), ReadError> {
        let (words, places) = match self {
            KeptWords::Copied { copy, places } => match copy.finish().map_err(ReadError::Copy)? {
                words @ BlockWords::Memory(_) => (words, places),
                words @ BlockWords::File(_) => (words, places.in_bytes()),
            },
            KeptWords::InFile { file, places } => (BlockWords::File(file), places),
            KeptWords::None => (BlockWords::default(), WholeContents::new(0, 1)),
        };
        Ok((words, ContentsTable::Whole(places)))
    }
}

/// The words that are copied to a file at once: 256 KiB.
const AT_ONCE: usize = 32 << 10;

/// The most words that are kept in memory: 64 MiB. A scan that has fewer is not copied.
const MOST_IN_MEMORY: usize = if cfg!(test) { 1000 } else { 8 << 20 };

/// Words that are kept in memory, or copied to a file once there are many.
struct Copy<'c> {
    /// Those that are not in the file.
    words: Vec<u64>,
    /// The number of words at which they are moved to the file.
    most: usize,
    new_file: Option<NewFile<'c>>,
    file: Option<File>,
    bytes: Vec<u8>,
}

impl<'c> Copy<'c> {
    fn new(new_file: Option<NewFile<'c>>) -> Self {
        let most = if new_file.is_some() { MOST_IN_MEMORY } else { usize::MAX };
        Self { words: Vec::new(), most, new_file, file: None, bytes: Vec::new() }
    }

    /// Moves the words to the file if there are many. Without a file all stay in memory.
    fn make_room(&mut self) -> io::Result<()> {
        if self.words.len() < self.most {
            return Ok(());
        }
        if let Some(new_file) = self.new_file.take() {
            self.file = new_file().ok();
        }
        self.most = if self.file.is_some() { AT_ONCE } else { usize::MAX };
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        for words in self.words.chunks(AT_ONCE) {
            self.bytes.clear();
            self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            file.write_all(&self.bytes)?;
        }
        self.words = Vec::with_capacity(2 * AT_ONCE);
        Ok(())
    }

    fn finish(mut self) -> io::Result<BlockWords> {
        self.write()?;
        Ok(match self.file {
            Some(file) => BlockWords::File(FileWords::new(file)),
            None => BlockWords::Memory(self.words),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{DEFAULT_LIMIT, read, read_with_copy};

    /// A scan of blocks with different words, of which one has more words than fit at once.
    fn scan() -> Vec<u8> {
        let json = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},"blockList":[
            {"req":0,"alloc":"A"}],"traceTable":{"A":["C"]},"frameTable":{"C":"#00: main"},
            "memreport":{"version":1,"needs":["scannedBlocks"],"scannedBlocks":9}}"##;
        let mut scan = [json.as_bytes(), &[0]].concat();
        for block in 0..9_u64 {
            let bytes = if block == 5 { AT_ONCE as u64 * 8 + 16 } else { 24 * block };
            // The block's four numbers, in base 128.
            for mut number in [1 << 24, bytes, 0, 1] {
                while number >= 0x80 {
                    scan.push(number.to_le_bytes()[0] | 0x80);
                    number >>= 7;
                }
                scan.push(number.to_le_bytes()[0]);
            }
            let words = (0..bytes / 8).map(|word| word * 3 + block);
            scan.extend(words.flat_map(u64::to_le_bytes));
        }
        scan
    }

    fn words(dump: &Dump) -> Vec<(usize, Vec<u64>)> {
        let words = |contents| dump.words(&contents, &mut Vec::new()).to_vec();
        dump.contents().map(|contents| (contents.block(), words(contents))).collect()
    }

    fn new_file(path: &std::path::Path) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(path)
    }

    #[test]
    fn words_of_a_large_scan_are_copied_and_the_same() {
        let path = std::env::temp_dir().join(format!("memreport-kept-{}", std::process::id()));
        let in_memory = read(&*scan(), DEFAULT_LIMIT).expect("a dump");
        let mut copy = || new_file(&path);
        let copied = read_with_copy(&*scan(), &mut copy, DEFAULT_LIMIT).expect("a dump");
        assert!(matches!(copied.words, BlockWords::File(_)));
        assert_eq!(words(&in_memory).len(), 8);
        assert!(words(&copied) == words(&in_memory));
        std::fs::remove_file(path).expect("it is there");
        // Without a file, they are in memory.
        let mut none = || Err(io::ErrorKind::PermissionDenied.into());
        let kept = read_with_copy(&*scan(), &mut none, DEFAULT_LIMIT).expect("a dump");
        assert!(matches!(kept.words, BlockWords::Memory(_)));
        assert!(words(&kept) == words(&in_memory));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_with_its_remedy() {
        let mut full = || File::options().write(true).open("/dev/full");
        let error = read_with_copy(&*scan(), &mut full, DEFAULT_LIMIT).expect_err("it is full");
        let error = error.to_string();
        assert!(error.contains("No space left on device"), "{error}");
        assert!(error.contains("TMPDIR"), "{error}");
    }
}
