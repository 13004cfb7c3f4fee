//! The list of a scan's blocks, in about six bytes each.
//!
//! It lives in the program that is scanned, together with its heap. What many blocks have in
//! common is in their group; a block has four numbers in base 128:
//!
//! ```text
//! the bytes from the last block's address to its own
//! the number of its group, doubled, plus one if there are contents
//! with contents only: the bytes from the last contents in the file to its own, and their words
//! ```

use super::ContentsRange;
use super::base_128::{self, Digits};
use crate::collect::groups::GroupId;
use crate::mem::pages::PageList;

/// The size of a word of contents in bytes.
const WORD: u64 = size_of::<usize>() as u64;

/// A block of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScannedBlock {
    pub(crate) address: usize,
    pub(crate) group: GroupId,
    /// The contents in whole words; `None` if they could not be read.
    pub(crate) contents: Option<ContentsRange>,
}

/// The blocks of a scan, by address.
#[derive(Debug)]
pub(crate) struct ScannedBlocks {
    packed: PageList<u8>,
    length: usize,
    last: Before,
    /// The number of blocks that are missing, mostly because memory was short.
    pub(crate) lost: usize,
}

/// The address and the place from which a block's numbers are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// The address of the last block.
    address: usize,
    /// The place behind the last contents in the file.
    contents_end: u64,
}

impl ScannedBlocks {
    pub(crate) const fn new() -> Self {
        let last = Before { address: 0, contents_end: 0 };
        ScannedBlocks { packed: PageList::new(), length: 0, last, lost: 0 }
    }

    /// Adds a block, at a higher address than all before, with contents behind theirs. Otherwise,
    /// and if memory is short, it is lost, and is counted.
    pub(crate) fn push(&mut self, block: ScannedBlock) {
        let ScannedBlock { address, group, contents } = block;
        let skipped = contents
            .map_or(Some(0), |contents| contents.offset.checked_sub(self.last.contents_end));
        let distance = address.checked_sub(self.last.address);
        let (Some(distance), Some(skipped)) = (distance, skipped) else {
            self.lost += 1;
            return;
        };
        let words = contents.map_or(0, |contents| contents.bytes / WORD);
        let group = u64::from(group.number()) << 1 | u64::from(contents.is_some());
        let [distance, group, skipped, words] =
            [distance as u64, group, skipped, words].map(Digits::of);
        let of_contents = [skipped.as_bytes(), words.as_bytes()];
        let of_contents = of_contents.into_iter().filter(|_| contents.is_some());
        let before = self.packed.as_slice().len();
        let mut numbers = [distance.as_bytes(), group.as_bytes()].into_iter().chain(of_contents);
        if !numbers.all(|number| self.packed.push_all(number)) {
            self.packed.truncate(before);
            self.lost += 1;
            return;
        }
        self.length += 1;
        self.last.address = address;
        if let Some(ContentsRange { offset, bytes }) = contents {
            self.last.contents_end = offset + bytes;
        }
    }

    /// Returns the number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Iterates over the blocks, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ScannedBlock> {
        let mut packed = self.packed.as_slice();
        let mut before = Before::default();
        std::iter::from_fn(move || unpack(&mut packed, &mut before))
    }
}

/// Removes a block from the front of a packed list.
fn unpack(packed: &mut &[u8], before: &mut Before) -> Option<ScannedBlock> {
    before.address += usize::try_from(base_128::take(packed)?).ok()?;
    let group = base_128::take(packed)?;
    let contents = if group & 1 == 1 {
        let offset = before.contents_end + base_128::take(packed)?;
        let bytes = base_128::take(packed)? * WORD;
        before.contents_end = offset + bytes;
        Some(ContentsRange { offset, bytes })
    } else {
        None
    };
    let group = GroupId::from_number(u32::try_from(group >> 1).ok()?);
    Some(ScannedBlock { address: before.address, group, contents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::sys::shortage;

    fn block(address: usize, group: u32, contents: Option<(u64, u64)>) -> ScannedBlock {
        let contents = contents.map(|(offset, bytes)| ContentsRange { offset, bytes });
        ScannedBlock { address, group: GroupId::from_number(group), contents }
    }

    #[test]
    fn blocks_are_read_back() {
        let blocks = [
            block(0x10, 0, Some((64, 104))),
            block(0x80, u32::MAX, None),
            block(0x90, 7, Some((216, 0))),
            block(0x7fff_ffff_fff0, 7, Some((1 << 40, 1 << 39))),
        ];
        let mut list = ScannedBlocks::new();
        blocks.iter().for_each(|block| list.push(*block));
        assert_eq!((list.len(), list.lost), (blocks.len(), 0));
        assert!(list.iter().eq(blocks));
        let mut small = ScannedBlocks::new();
        (0..1000).for_each(|at| small.push(block(at * 112, 5, Some((48 + 152 * at as u64, 104)))));
        assert!(small.packed.as_slice().len() <= 4 * 1000 + 1, "four bytes each");
    }

    #[test]
    fn after_a_block_that_is_lost_the_others_are_right() {
        let mut list = ScannedBlocks::new();
        let all = |at: usize| block(at * 16, 3, Some((at as u64 * 64, 16)));
        shortage::run(|| list.push(all(0)));
        (1..3000).for_each(|at| list.push(all(at)));
        assert_eq!((list.len(), list.lost), (2999, 1));
        assert!(list.iter().eq((1..3000).map(all)));
    }
}
