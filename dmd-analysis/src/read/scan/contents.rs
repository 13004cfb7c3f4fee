//! The table of a dump's blocks that have contents: where their words are.

/// The contents of one block, as a range of words: of a block of more than 32 GiB, those of its
/// beginning.
#[derive(Debug, Clone, Copy)]
pub struct Contents {
    block: u32,
    count: u32,
    place: u64,
}

impl Contents {
    pub(crate) fn new(block: usize, place: u64, count: u64) -> Self {
        let block = u32::try_from(block).unwrap_or(u32::MAX);
        Self { block, count: u32::try_from(count).unwrap_or(u32::MAX), place }
    }

    /// Returns the index of the block in [`Dump::blocks`](crate::read::Dump::blocks).
    #[must_use]
    pub fn block(&self) -> usize {
        self.block as usize
    }

    /// Returns the place of the first word in [`BlockWords`](super::block_words::BlockWords).
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Returns the number of words.
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// Moves the words to another place.
    pub(super) fn move_to(&mut self, place: u64) {
        self.place = place;
    }

    /// Leaves the last words out.
    pub(crate) fn keep(&mut self, count: usize) {
        self.count = self.count.min(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// The size of a word in bytes.
const WORD: u64 = 8;

/// The contents of all blocks, in the order of the blocks.
#[derive(Debug)]
pub(crate) enum ContentsTable {
    /// Any words of any blocks.
    Listed(Vec<Contents>),
    /// All whole words of all requested bytes.
    Whole(WholeContents),
}

impl Default for ContentsTable {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl ContentsTable {
    /// Returns the contents of all blocks. `bytes` are the requested bytes of a block.
    pub(crate) fn iter(&self, bytes: impl Fn(usize) -> u64) -> impl Iterator<Item = Contents> {
        let (list, whole): (&[Contents], _) = match self {
            Self::Listed(list) => (list, None),
            Self::Whole(whole) => (&[], Some(whole)),
        };
        let whole = whole.map(|whole| whole.iter_from(0, bytes));
        list.iter().copied().chain(whole.into_iter().flatten())
    }

    /// Returns the contents of a block. `bytes` are the requested bytes of a block.
    pub(crate) fn of(&self, at: usize, bytes: impl Fn(usize) -> u64) -> Option<Contents> {
        match self {
            Self::Listed(list) => {
                let first = list.partition_point(|contents| contents.block() < at);
                list.get(first).filter(|contents| contents.block() == at).copied()
            }
            Self::Whole(whole) => whole.of(at, bytes),
        }
    }

    /// Returns the list of contents, each of which can be changed by itself.
    pub(crate) fn list(&mut self, bytes: impl Fn(usize) -> u64) -> &mut Vec<Contents> {
        if let Self::Whole(_) = self {
            *self = Self::Listed(self.iter(bytes).collect());
        }
        match self {
            Self::Listed(list) => list,
            Self::Whole(_) => unreachable!("it has been replaced"),
        }
    }
}

/// The places of the words of all blocks, where each block has all whole words of its requested
/// bytes or none.
///
/// A large scan has many millions of blocks, so a block takes two bytes here: its place follows
/// from the blocks before it.
#[derive(Debug)]
pub(crate) struct WholeContents {
    /// By block: the length of its head, which lies before its words, and [`HAS_WORDS`].
    heads: Vec<u8>,
    /// The places where the heads of every [`GROUP`]th block begin.
    groups: Vec<u64>,
    /// The place behind the last block.
    end: u64,
    /// The distance between the places of two words.
    word: u64,
}

/// The bit in [`WholeContents::heads`] of a block whose words are in the dump.
const HAS_WORDS: u8 = 1 << 7;

/// The number of blocks for each place that is kept: another byte for each block. Where it was four
/// times as large, finding places took a sixth of the time of the typed tree.
const GROUP: usize = 8;

impl WholeContents {
    /// Makes a table without blocks. The first block begins at `start`, and the places of two
    /// neighbouring words differ by `word`.
    pub(crate) fn new(start: u64, word: u64) -> Self {
        Self { heads: Vec::new(), groups: Vec::new(), end: start, word }
    }

    /// Adds a block with this number of words behind all others. The head is at most 127 long.
    pub(crate) fn push(&mut self, head: u8, words: u64) {
        if self.heads.len().is_multiple_of(GROUP) {
            self.groups.push(self.end);
        }
        self.heads.push(head | if words > 0 { HAS_WORDS } else { 0 });
        // The words of a damaged scan may add up to any number. There are none at such a place.
        let own = words.saturating_mul(self.word).saturating_add(u64::from(head));
        self.end = self.end.saturating_add(own);
    }

    /// Returns the same table where places are offsets in bytes instead of indices of words.
    pub(crate) fn in_bytes(self) -> Self {
        let groups = self.groups.into_iter().map(|place| place.saturating_mul(WORD)).collect();
        Self { groups, end: self.end.saturating_mul(WORD), word: WORD, ..self }
    }

    fn of(&self, at: usize, bytes: impl Fn(usize) -> u64) -> Option<Contents> {
        if self.heads.get(at)? & HAS_WORDS == 0 {
            return None;
        }
        self.iter_from(at / GROUP, bytes).find(|contents| contents.block() == at)
    }

    /// Returns the contents of blocks from a group on.
    fn iter_from(
        &self,
        group: usize,
        bytes: impl Fn(usize) -> u64,
    ) -> impl Iterator<Item = Contents> {
        let first = group * GROUP;
        let mut place = self.groups.get(group).copied().unwrap_or(self.end);
        self.heads[first..].iter().zip(first..).filter_map(move |(head, block)| {
            place = place.saturating_add(u64::from(head & !HAS_WORDS));
            let count = if head & HAS_WORDS == 0 { 0 } else { bytes(block) / WORD };
            let own = Contents::new(block, place, count);
            place = place.saturating_add(count.saturating_mul(self.word));
            (count > 0).then_some(own)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_damaged_scan_may_add_up_to_any_number() {
        let mut whole = WholeContents::new(100, 8);
        for words in [u64::MAX / 4, u64::MAX, 1] {
            whole.push(4, words);
        }
        assert_eq!(whole.end, u64::MAX);
        let table = ContentsTable::Whole(WholeContents { word: 1, ..whole }.in_bytes());
        assert_eq!(table.iter(|_| u64::MAX).count(), 3);
    }

    #[test]
    fn both_kinds_of_table_have_the_same_contents() {
        // Some groups of blocks, of which every third has no whole word, and every fifth no words.
        let bytes = |at: usize| if at.is_multiple_of(3) { 5 } else { 8 + at as u64 * 3 };
        let head = |at: usize| u8::try_from(4 + at % 7).expect("it is small");
        for (start, word) in [(100, 8), (0, 1)] {
            let mut whole = WholeContents::new(start, word);
            let (mut list, mut place) = (Vec::new(), start);
            for at in 0..3 * GROUP + 5 {
                let words = if at.is_multiple_of(5) { 0 } else { bytes(at) / WORD };
                let head = if word == 1 { 0 } else { head(at) };
                whole.push(head, words);
                place += u64::from(head);
                if words > 0 {
                    list.push(Contents::new(at, place, words));
                }
                place += words * word;
            }
            let parts = |of: Contents| (of.block(), of.place(), of.count());
            let expected: Vec<_> = list.iter().copied().map(parts).collect();
            let blocks = whole.heads.len() + 1;
            for mut table in [ContentsTable::Listed(list), ContentsTable::Whole(whole)] {
                let all: Vec<_> = table.iter(bytes).map(parts).collect();
                assert_eq!(all, expected);
                let of = (0..blocks).filter_map(|at| table.of(at, bytes).map(parts));
                assert_eq!(of.collect::<Vec<_>>(), expected);
                let list = table.list(bytes).iter().copied().map(parts);
                assert_eq!(list.collect::<Vec<_>>(), expected);
            }
        }
    }
}
