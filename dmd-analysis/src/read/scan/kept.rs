//! The blocks of a scan, as a dump keeps them.

use std::num::NonZeroU64;

use super::block_words::{BlockWords, FileWords};
use super::contents::{ContentsTable, WholeContents};
use super::copied_words::{AT_ONCE, CopiedWords, NewFile};
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
    Read { words: CopiedWords<'c>, places: WholeContents },
    InFile { file: FileWords, places: WholeContents },
    None,
}

impl<'c> KeptWords<'c> {
    fn new(kept: Kept<'c>, first: u64) -> Self {
        // In memory, words follow each other without heads, and places are their indices.
        let read = |file| KeptWords::Read {
            words: CopiedWords::new(file),
            places: WholeContents::new(0, 1),
        };
        match kept {
            Kept::InMemory => read(None),
            Kept::WordsInCopy(file) => read(Some(file)),
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
            KeptWords::Read { words, places } => {
                places.push(0, block.words);
                let mut left = block.words;
                while left > 0 {
                    let now = left.min(AT_ONCE as u64);
                    blocks.words(now, words.room().map_err(ReadError::Copy)?)?;
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
            KeptWords::Read { words, places } => match words.finish().map_err(ReadError::Copy)? {
                words @ BlockWords::Memory(_) => (words, places),
                words @ BlockWords::File(_) => (words, places.in_bytes()),
            },
            KeptWords::InFile { file, places } => (BlockWords::File(file), places),
            KeptWords::None => (BlockWords::default(), WholeContents::new(0, 1)),
        };
        Ok((words, ContentsTable::Whole(places)))
    }
}
