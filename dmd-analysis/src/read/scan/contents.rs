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
    /// All whole words of all requested bytes: by block the place of the first, or [`NOWHERE`].
    /// Most of a large scan's memory is its blocks, so nothing is kept twice.
    Whole(Vec<u64>),
}

/// The place of a block's words that are not in the dump.
const NOWHERE: u64 = u64::MAX;

impl Default for ContentsTable {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl ContentsTable {
    /// Adds the contents of a block behind all others.
    pub(crate) fn push(&mut self, contents: Contents) {
        match self {
            Self::Listed(list) => list.push(contents),
            Self::Whole(places) => {
                places.resize(contents.block(), NOWHERE);
                places.push(contents.place);
            }
        }
    }

    /// Returns the contents of all blocks. `bytes` are the requested bytes of a block.
    pub(crate) fn iter(&self, bytes: impl Fn(usize) -> u64) -> impl Iterator<Item = Contents> {
        let (list, places): (&[Contents], &[u64]) = match self {
            Self::Listed(list) => (list, &[]),
            Self::Whole(places) => (&[], places),
        };
        let whole = places.iter().enumerate();
        let whole = whole.filter_map(move |(at, place)| whole_words(at, *place, || bytes(at)));
        list.iter().copied().chain(whole)
    }

    /// Returns the contents of a block.
    pub(crate) fn of(&self, at: usize, bytes: impl Fn() -> u64) -> Option<Contents> {
        match self {
            Self::Listed(list) => {
                let first = list.partition_point(|contents| contents.block() < at);
                list.get(first).filter(|contents| contents.block() == at).copied()
            }
            Self::Whole(places) => whole_words(at, *places.get(at)?, bytes),
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

fn whole_words(at: usize, place: u64, bytes: impl Fn() -> u64) -> Option<Contents> {
    (place != NOWHERE).then(|| Contents::new(at, place, bytes() / WORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_table_have_the_same_contents() {
        let bytes = |at: usize| [8, 20, 5, 32, 64][at];
        let mut tables = [ContentsTable::default(), ContentsTable::Whole(Vec::new())];
        for table in &mut tables {
            for (at, place) in [(1, 0), (3, 2)] {
                table.push(Contents::new(at, place, bytes(at) / WORD));
            }
        }
        let parts = |of: Contents| (of.block(), of.place(), of.count());
        for table in &mut tables {
            let all: Vec<_> = table.iter(bytes).map(parts).collect();
            assert_eq!(all, [(1, 0, 2), (3, 2, 4)]);
            let of = [0, 1, 2, 3, 4].map(|at| table.of(at, || bytes(at)).map(parts));
            assert_eq!(of, [None, Some((1, 0, 2)), None, Some((3, 2, 4)), None]);
            assert_eq!(table.list(bytes).iter().map(Contents::count).sum::<usize>(), 6);
        }
    }
}
