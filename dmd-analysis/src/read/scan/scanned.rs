//! Reads the blocks of a scan, which follow the JSON of a dump in binary.
//!
//! `blockList` has the kinds of blocks. Each block is four numbers, in base 128 with the lowest
//! digit first: the distance of its address from the one before, its requested bytes, its slop, and
//! twice the index of its kind, plus one if its words follow.

use std::io;

use crate::read::error::ReadError;
use crate::read::input::Input;

/// The size of a word of contents in bytes.
pub(super) const WORD: u64 = 8;

/// The most bytes of the four numbers of a block.
const LONGEST: usize = 4 * 10;

/// Splits a dump into its JSON and the blocks behind it; `None` if there are none.
pub(crate) fn split(dump: &[u8]) -> (&[u8], Option<&[u8]>) {
    match dump.iter().position(|byte| *byte == 0) {
        Some(end) => (&dump[..end], Some(&dump[end + 1..])),
        None => (dump, None),
    }
}

/// A block of a scan, as it stands in the dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScannedBlock {
    pub(crate) address: u64,
    pub(crate) req: u64,
    pub(crate) slop: u64,
    /// The index of its kind in `blockList`.
    pub(crate) kind: usize,
    /// The number of its words, which follow.
    pub(crate) words: u64,
    /// The bytes of its four numbers.
    pub(super) head: u8,
}

/// The blocks of a scan, one after the other.
pub(crate) struct Scanned<'i, I> {
    input: &'i mut I,
    count: u64,
    /// The number of blocks that have been read.
    read: u64,
    /// The address of the last one.
    before: u64,
}

impl<'i, I: Input> Scanned<'i, I> {
    pub(crate) fn new(count: u64, input: &'i mut I) -> Self {
        Self { input, count, read: 0, before: 0 }
    }

    /// Reads the next block, whose words must be read or skipped before the block behind it.
    /// Returns `None` behind the last block.
    pub(crate) fn next(&mut self) -> Result<Option<ScannedBlock>, ReadError> {
        let read = match self.read == self.count {
            true => self.end(),
            false => self.block().map(|block| Some(block.ok_or_else(|| self.cut()))),
        };
        let block = read.map_err(|error| self.input.error(error))?.transpose()?;
        self.read += u64::from(block.is_some());
        Ok(block)
    }

    /// Appends the next words of a block.
    pub(crate) fn words(&mut self, count: u64, words: &mut Vec<u64>) -> Result<(), ReadError> {
        let is_whole = self.append_words(count, words);
        self.check_words(is_whole)
    }

    /// Skips the words of a block.
    pub(super) fn skip_words(&mut self, of: &ScannedBlock) -> Result<(), ReadError> {
        let is_whole = self.skip(of.words.saturating_mul(WORD));
        self.check_words(is_whole)
    }

    fn check_words(&mut self, is_whole: io::Result<bool>) -> Result<(), ReadError> {
        if is_whole.map_err(|error| self.input.error(error))? {
            return Ok(());
        }
        self.read -= 1;
        Err(self.cut())
    }

    /// Returns the error for a damaged block: the last one that was read.
    pub(crate) fn damaged(&self) -> ReadError {
        ReadError::BadBlock { index: self.read.saturating_sub(1) }
    }

    fn cut(&self) -> ReadError {
        ReadError::CutBlocks { index: self.read, count: self.count }
    }

    /// Checks that nothing follows the last block.
    fn end(&mut self) -> io::Result<Option<Result<ScannedBlock, ReadError>>> {
        let is_at_end = self.input.fill_buf()?.is_empty();
        Ok((!is_at_end).then_some(Err(ReadError::BadBlock { index: self.count })))
    }

    /// Reads a block; `None` if the input ends in it.
    fn block(&mut self) -> io::Result<Option<ScannedBlock>> {
        let Some(Head { numbers, length }) = self.head()? else { return Ok(None) };
        let [distance, req, slop, kind] = numbers;
        let words = if kind & 1 == 1 { req / WORD } else { 0 };
        let address = self.before.wrapping_add(distance);
        self.before = address;
        let kind = usize::try_from(kind >> 1).ok();
        Ok(kind.map(|kind| ScannedBlock { address, req, slop, kind, words, head: length }))
    }

    /// Reads the head of a block; `None` if the input ends in it, or a number is damaged.
    fn head(&mut self) -> io::Result<Option<Head>> {
        let buffer = self.input.fill_buf()?;
        if buffer.len() >= LONGEST {
            let mut rest = buffer.iter();
            let head = head(|| Ok(rest.next().copied()));
            let used = buffer.len() - rest.len();
            self.input.consume(used);
            return head;
        }
        head(|| self.byte())
    }

    /// Appends this many words; `false` if the input ends in them.
    fn append_words(&mut self, count: u64, words: &mut Vec<u64>) -> io::Result<bool> {
        let mut left = count;
        while left > 0 {
            let buffer = self.input.fill_buf()?;
            let here = left.min(buffer.len() as u64 / WORD);
            let Ok(bytes) = usize::try_from(here * WORD) else { return Ok(false) };
            let as_words = buffer[..bytes].chunks_exact(8);
            words.extend(as_words.map(|word| word.try_into().map_or(0, u64::from_le_bytes)));
            self.input.consume(bytes);
            left -= here;
            if here == 0 {
                // A word of which the buffer has only a part.
                let mut word = [0; 8];
                for byte in &mut word {
                    let Some(next) = self.byte()? else { return Ok(false) };
                    *byte = next;
                }
                words.push(u64::from_le_bytes(word));
                left -= 1;
            }
        }
        Ok(true)
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.input.fill_buf()?.first().copied();
        self.input.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// Skips this many bytes; `false` if the input ends in them.
    fn skip(&mut self, count: u64) -> io::Result<bool> {
        let mut left = count;
        while left > 0 {
            let buffer = self.input.fill_buf()?.len();
            let here = usize::try_from(left).unwrap_or(usize::MAX).min(buffer);
            if here == 0 {
                return Ok(false);
            }
            self.input.consume(here);
            left -= here as u64;
        }
        Ok(true)
    }
}

/// The four numbers of a block.
struct Head {
    numbers: [u64; 4],
    /// Its bytes, at most [`LONGEST`].
    length: u8,
}

/// Reads the head of a block from bytes.
fn head(mut byte: impl FnMut() -> io::Result<Option<u8>>) -> io::Result<Option<Head>> {
    let mut head = Head { numbers: [0; 4], length: 0 };
    let mut counted = || {
        head.length += 1;
        byte()
    };
    for number in &mut head.numbers {
        let Some(read) = self::number(&mut counted)? else { return Ok(None) };
        *number = read;
    }
    Ok(Some(head))
}

/// Reads a number; `None` if it is cut, or has more than 64 bits.
fn number(byte: &mut impl FnMut() -> io::Result<Option<u8>>) -> io::Result<Option<u64>> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let Some(digit) = byte()? else { return Ok(None) };
        number |= u64::from(digit & 0x7f) << shift;
        if digit & 0x80 == 0 {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::analysis::ExplainOptions;
    use crate::axis::Axis;
    use crate::heap::{Heap, HeapOptions};
    use crate::read::scan::block_words::BlockWords;
    use crate::read::{Block, DEFAULT_LIMIT, Dump, read_amounts, read_file, read_slice};
    use crate::retention::Retention;
    use crate::symbols::{Symboliser, symbolicate};

    const JSON: &str = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},"blockList":[
        {"req":0,"alloc":"A","thread":1},{"req":0,"alloc":"B","reportedBy":["A"]}],
        "memreport":{"version":1,"needs":["scannedBlocks"],"scannedBlocks":3},
        "traceTable":{"A":["C"],"B":["C"]},"frameTable":{"C":"#00: main"}}"##;

    /// Three blocks: of 20 bytes with words, of 300 without, and of 5, which has no whole word.
    fn dump() -> Vec<u8> {
        let mut dump = [JSON.as_bytes(), &[0]].concat();
        dump.extend([0x80, 0x20, 20, 4, 1]);
        dump.extend(7_u64.to_le_bytes().into_iter().chain(0x1000_u64.to_le_bytes()));
        dump.extend([32, 0xac, 2, 4, 2]);
        dump.extend([0x80, 4, 5, 19, 1]);
        dump
    }

    #[test]
    fn blocks_follow_the_json() {
        let dump = read_slice(&dump()).expect("a dump");
        let sizes: Vec<_> = dump
            .blocks
            .iter()
            .map(|block| (block.addr.map_or(0, NonZeroU64::get), block.req, block.slop))
            .collect();
        assert_eq!(sizes, [(0x1000, 20, 4), (0x1020, 300, 4), (0x1220, 5, 19)]);
        let contents: Vec<_> = dump.contents().collect();
        assert_eq!(contents.len(), 1);
        assert_eq!(dump.words(&contents[0], &mut Vec::new()), [7, 0x1000]);
        assert_eq!(dump.blocks.at(1).kind.alloc.map(|trace| dump.trace(trace).len()), Some(1));
        assert!(dump.reports(&dump.blocks.at(1)).is_some());
        assert!(dump.reports(&dump.blocks.at(2)).is_none());
        assert_eq!(dump.blocks.at(2).kind.thread, Some(1));
    }

    #[test]
    fn amounts_are_those_of_each_block() {
        let mut bytes = dump();
        // Behind the three blocks are two like the second and one like the third.
        for head in [[32, 0xac, 2, 4, 2], [32, 0xac, 2, 4, 2]] {
            bytes.extend(head);
        }
        bytes.extend([32, 5, 19, 1]);
        let count = br#"Blocks":3"#;
        let at = bytes.windows(count.len()).position(|part| part == count).expect("it is there");
        bytes[at + count.len() - 1] = b'6';
        let each = read_slice(&bytes).expect("a dump");
        let sums = read_amounts(&*bytes, DEFAULT_LIMIT).expect("a dump");
        assert_eq!((each.blocks.len(), sums.blocks.len()), (6, 3));
        assert_eq!((each.contents().count(), sums.contents().count()), (1, 0));
        let rows = |dump: &Dump| {
            let heap = Heap::new(dump, &HeapOptions::default()).expect("it has no sampled reports");
            heap.rows
                .iter()
                .map(|row| (row.kind.clone(), row.live, row.allocated))
                .collect::<Vec<_>>()
        };
        assert_eq!(rows(&sums), rows(&each));
        assert_eq!(rows(&sums).iter().map(|row| row.1.blocks).sum::<i128>(), 6);
        let error = read_amounts(&bytes[..bytes.len() - 1], DEFAULT_LIMIT).expect_err("it is cut");
        assert!(matches!(error, ReadError::CutBlocks { index: 5, count: 6 }), "{error}");
    }

    #[test]
    fn contents_of_zeros_are_no_gzip_bomb() {
        use std::io::Write;

        const BYTES: usize = 32 << 20;
        let one = JSON.replace("Blocks\":3", "Blocks\":1");
        let head = [0x80, 0x20, 0x80, 0x80, 0x80, 0x10, 0, 1];
        let scan = [one.as_bytes(), &[0], &head, &vec![0; BYTES]].concat();
        let text = [b"{", &vec![b' '; BYTES][..]].concat();
        let [scan, text] = [scan, text].map(|bytes| {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&bytes).expect("a vector takes all");
            packed.finish().expect("a vector takes all")
        });
        assert!(scan.len() * 100 < BYTES, "{}", scan.len());
        let dump = crate::read::read(&*scan, DEFAULT_LIMIT).expect("a dump");
        assert_eq!(dump.blocks.at(0).req, BYTES as u64);
        let mut json = Vec::new();
        symbolicate(&*scan, &mut Symboliser::default(), &mut json).expect("a dump");
        let json = String::from_utf8(json).expect("it is text");
        let zeros = json.matches("\"0\",").count();
        assert_eq!(zeros, BYTES / 8 - 1, "each but the last");
        let error = crate::read::read(&*text, DEFAULT_LIMIT).expect_err("its JSON is a bomb");
        assert!(matches!(error, ReadError::Bomb(_)), "{error}");
    }

    #[test]
    fn words_that_stay_in_the_file_are_the_same_until_it_is_cut() {
        let path = std::env::temp_dir().join(format!("memreport-scanned-{}", std::process::id()));
        std::fs::write(&path, dump()).expect("it is written");
        let read = read_file(&path).expect("a dump");
        assert!(matches!(read.words, BlockWords::File(_)));
        let contents = read.contents_of(0).expect("it has words");
        assert_eq!(read.words(&contents, &mut Vec::new()), [7, 0x1000]);
        assert!(read.contents_of(1).is_none() && read.contents_of(2).is_none());
        let options = ExplainOptions::default();
        let retention = Retention::new(&read, &options).expect("it is whole");

        let cut = read_file(&path).expect("a dump");
        let file = std::fs::File::options().write(true).open(&path).expect("it is there");
        file.set_len(JSON.len() as u64 + 10).expect("it may be written");
        let error = Retention::new(&cut, &options).expect_err("words are missing");
        // Groups read the words once more.
        assert_eq!(retention.check_words(), Ok(()));
        let _ = retention.groups(&Axis::Type, 1);
        assert_eq!(retention.check_words().expect_err("words are missing"), error);
        assert_eq!(
            error.to_string(),
            "the contents of blocks can no longer be read from the file: it has become shorter; \
             leave it as it is until the answer is there"
        );
        std::fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn a_self_contained_dump_has_the_same_blocks_as_json() {
        let whole = read_slice(&dump()).expect("a dump");
        let mut json = Vec::new();
        symbolicate(&dump()[..], &mut Symboliser::default(), &mut json).expect("a dump");
        assert!(!json.contains(&0));
        let read = read_slice(&json).expect("a dump");
        let blocks = |dump: &Dump| {
            let words = |index| {
                let own = dump.contents_of(index);
                own.map(|own| dump.words(&own, &mut Vec::new()).to_vec())
            };
            let of = |(index, block): (usize, Block<'_>)| {
                (block.req, block.slop, block.addr, block.kind.thread, words(index))
            };
            dump.blocks.iter().enumerate().map(of).collect::<Vec<_>>()
        };
        assert_eq!(blocks(&read), blocks(&whole));
    }

    #[test]
    fn a_dump_that_is_cut_anywhere_is_refused() {
        let whole = dump();
        let begin = JSON.len();
        for length in begin..whole.len() {
            let error = read_slice(&whole[..length]).expect_err("it is cut");
            assert!(matches!(error, ReadError::CutBlocks { count: 3, .. }), "{length}: {error}");
        }
        let error = read_slice(&[&whole[..], &[1]].concat()).expect_err("it is too long");
        assert!(matches!(error, ReadError::BadBlock { index: 3 }), "{error}");
        let mut unknown = whole;
        unknown[begin + 5] = 4;
        let error = read_slice(&unknown).expect_err("there are two kinds");
        assert!(matches!(error, ReadError::BadBlock { index: 0 }), "{error}");
    }

    #[test]
    fn numbers_have_at_most_64_bits() {
        let read = |bytes: &[u8]| {
            let mut bytes = bytes.iter();
            number(&mut || Ok(bytes.next().copied())).expect("a slice can be read")
        };
        assert_eq!(read(&[0xac, 2]), Some(300));
        assert_eq!(read(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Some(u64::MAX));
        assert_eq!(read(&[0x80; 11]), None);
        assert_eq!(read(&[0x80]), None);
    }
}
