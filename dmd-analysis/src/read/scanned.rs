//! Reads the blocks of a scan, which follow the JSON of a dump in binary.
//!
//! `blockList` has the kinds of blocks. Each block is four numbers, in base 128 with the lowest
//! digit first: the distance of its address from the one before, its requested bytes, its slop, and
//! twice the index of its kind, plus one if its words follow.

use std::num::NonZeroU64;

use super::error::ReadError;
use super::model::{Block, Contents, Dump};

/// The size of a word of contents in bytes.
const WORD: u64 = 8;

/// Splits a dump into its JSON and the blocks behind it; `None` if there are none.
pub(crate) fn split(dump: &[u8]) -> (&[u8], Option<&[u8]>) {
    match dump.iter().position(|byte| *byte == 0) {
        Some(end) => (&dump[..end], Some(&dump[end + 1..])),
        None => (dump, None),
    }
}

/// A block of a scan, as it stands in the dump.
pub(crate) struct ScannedBlock<'d> {
    pub(crate) address: u64,
    pub(crate) req: u64,
    pub(crate) slop: u64,
    /// The index of its kind in `blockList`.
    pub(crate) kind: usize,
    /// Its contents in words of 8 bytes; `None` if they could not be read.
    pub(crate) words: Option<&'d [u8]>,
}

/// Calls `visit` for each block. `visit` returns `None` for a block whose kind it does not know.
pub(crate) fn for_each<'d>(
    count: u64,
    mut input: &'d [u8],
    mut visit: impl FnMut(ScannedBlock<'d>) -> Option<()>,
) -> Result<(), ReadError> {
    let mut before = 0;
    for index in 0..count {
        let block = block(&mut input, before);
        let block = block.ok_or(ReadError::CutBlocks { index, count })?;
        before = block.address;
        visit(block).ok_or(ReadError::BadBlock { index })?;
    }
    if input.is_empty() { Ok(()) } else { Err(ReadError::BadBlock { index: count }) }
}

/// Reads the block behind the one at address `before`.
fn block<'d>(input: &mut &'d [u8], before: u64) -> Option<ScannedBlock<'d>> {
    let address = before.wrapping_add(number(input)?);
    let (req, slop, kind) = (number(input)?, number(input)?, number(input)?);
    let words = match kind & 1 {
        0 => None,
        _ => Some(input.split_off(..usize::try_from(req / WORD * WORD).ok()?)?),
    };
    Some(ScannedBlock { address, req, slop, kind: usize::try_from(kind >> 1).ok()?, words })
}

/// Returns the words of a block's contents.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes).unwrap_or_default())
}

/// Replaces the kinds of blocks, which the dump has so far, by this many blocks.
pub(super) fn read(dump: &mut Dump, count: u64, input: &[u8]) -> Result<(), ReadError> {
    let kinds = std::mem::take(&mut dump.blocks);
    for_each(count, input, |block| {
        let ScannedBlock { address, req, slop, kind, words: bytes } = block;
        // A block without a whole word has no contents.
        if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
            let start = dump.words.len();
            dump.words.extend(words(bytes));
            let words = start..dump.words.len();
            dump.contents.push(Contents { block: dump.blocks.len(), words });
        }
        let kind = kinds.get(kind)?.clone();
        dump.blocks.push(Block { req, slop, addr: NonZeroU64::new(address), ..kind });
        Some(())
    })
}

/// Reads a number; `None` if it is cut, or has more than 64 bits.
fn number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let digit = *input.split_off_first()?;
        number |= u64::from(digit & 0x7f) << shift;
        if digit & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;

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
        assert_eq!(dump.contents.len(), 1);
        assert_eq!(dump.words(&dump.contents[0]), [7, 0x1000]);
        assert_eq!(dump.blocks[1].alloc.map(|trace| dump.trace(trace).len()), Some(1));
        assert!(dump.reports(&dump.blocks[1]).is_some() && dump.reports(&dump.blocks[2]).is_none());
        assert_eq!(dump.blocks[2].thread, Some(1));
    }

    #[test]
    fn a_self_contained_dump_has_the_same_blocks_as_json() {
        let whole = read_slice(&dump()).expect("a dump");
        let (json, _) =
            crate::symbols::symbolicate(&dump(), &mut crate::symbols::Symboliser::default())
                .expect("a dump");
        assert!(!json.contains(&0));
        let read = read_slice(&json).expect("a dump");
        let blocks = |dump: &Dump| {
            let words = |index| {
                let own = dump.contents.iter().find(|contents| contents.block == index);
                own.map(|own| dump.words(own).to_vec())
            };
            let of = |(index, block): (usize, &Block)| {
                let Block { req, slop, addr, thread, .. } = *block;
                (req, slop, addr, thread, words(index))
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
        let read = |mut bytes: &[u8]| number(&mut bytes);
        assert_eq!(read(&[0xac, 2]), Some(300));
        assert_eq!(read(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Some(u64::MAX));
        assert_eq!(read(&[0x80; 11]), None);
        assert_eq!(read(&[0x80]), None);
    }
}
