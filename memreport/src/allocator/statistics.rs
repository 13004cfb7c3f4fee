//! What an allocator says of itself: how much memory it has of the operating system, and what of it is in no block.

/// What an allocator says of itself at one moment, for [`UsableSize::statistics`](crate::UsableSize::statistics).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// What the allocator is called, as `jemalloc`.
    pub allocator: &'static str,
    /// The bytes that it has of the operating system and has not given back, whether they were touched or not.
    pub committed: u64,
    /// How much of that is in physical memory, where the allocator can say.
    pub resident: Option<u64>,
    /// The bytes that it uses to find blocks, but for `header`.
    pub bookkeeping: u64,
    /// The bytes that it keeps before each block.
    pub header: u64,
    /// The bytes in pages that hold no block.
    pub page_cache: u64,
    /// The bytes that are free among blocks, where the allocator counts them.
    pub bin_unused: u64,
    /// What the rest is: all that is committed, less blocks and what the other fields name.
    pub rest: HeapRest,
}

/// What is left of an allocator's memory when blocks and all that it names are taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapRest {
    /// Free memory among blocks.
    BinUnused,
    /// Free memory of any sort, and bookkeeping: the allocator tells no more.
    Unused,
    /// Blocks of code that is not Rust's, which uses the same allocator, and caches that count as blocks.
    OtherCode,
}

impl HeapStatistics {
    /// Of an allocator that says only how much it has.
    #[must_use]
    pub const fn new(allocator: &'static str, committed: u64) -> Self {
        HeapStatistics {
            allocator,
            committed,
            resident: None,
            bookkeeping: 0,
            header: 0,
            page_cache: 0,
            bin_unused: 0,
            rest: HeapRest::Unused,
        }
    }

    /// Divides what is committed, so that `blocks` with `allocated` usable bytes and the parts add up to it.
    #[must_use]
    pub(crate) fn divide(&self, allocated: u64, blocks: u64) -> HeapDivision {
        let bookkeeping = self.bookkeeping.saturating_add(self.header.saturating_mul(blocks));
        let named = [allocated, bookkeeping, self.page_cache, self.bin_unused];
        let named = named.into_iter().fold(0, u64::saturating_add);
        // Allocator and counters are read one after the other, so the rest of a busy moment may come out below nothing.
        let rest = self.committed.saturating_sub(named);
        let rest_is = |kind| if self.rest == kind { rest } else { 0 };
        HeapDivision {
            bookkeeping,
            page_cache: self.page_cache,
            bin_unused: self.bin_unused + rest_is(HeapRest::BinUnused),
            unused: rest_is(HeapRest::Unused),
            other_code: rest_is(HeapRest::OtherCode),
        }
    }
}

/// What an allocator has beside the program's own blocks, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapDivision {
    pub(crate) bookkeeping: u64,
    pub(crate) page_cache: u64,
    pub(crate) bin_unused: u64,
    pub(crate) unused: u64,
    pub(crate) other_code: u64,
}

impl HeapDivision {
    /// What is used for no block of anybody's.
    pub(crate) fn overhead(&self) -> u64 {
        self.bookkeeping + self.page_cache + self.bin_unused + self.unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_add_up_to_what_is_committed() {
        let named = HeapStatistics {
            bookkeeping: 100,
            header: 8,
            page_cache: 200,
            bin_unused: 300,
            ..HeapStatistics::new("test", 10_000)
        };
        for rest in [HeapRest::BinUnused, HeapRest::Unused, HeapRest::OtherCode] {
            let division = HeapStatistics { rest, ..named }.divide(5000, 10);
            assert_eq!(5000 + division.overhead() + division.other_code, 10_000, "{rest:?}");
            assert_eq!(division.bookkeeping, 180);
        }
        assert_eq!(named.divide(5000, 10).unused, 10_000 - 5000 - 180 - 200 - 300);
    }

    #[test]
    fn a_rest_below_nothing_is_none() {
        let division = HeapStatistics::new("test", 10).divide(20, 1);
        assert_eq!(division, HeapDivision::default());
    }
}
