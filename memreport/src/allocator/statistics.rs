//! Divides an allocator's committed memory into blocks, bookkeeping, cached pages and the rest.

/// Statistics of an allocator at one moment, from
/// [`UsableSize::statistics`](crate::UsableSize::statistics). All sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// The allocator's name, such as `jemalloc`.
    pub allocator: &'static str,
    /// Bytes obtained from the operating system and not released, touched or not.
    pub committed: u64,
    /// The part of `committed` in physical memory, where the allocator reports it.
    pub resident: Option<u64>,
    /// Bytes that the allocator uses to find blocks, `header` excluded.
    pub bookkeeping: u64,
    /// Bytes that the allocator keeps before each block.
    pub header: u64,
    /// Bytes in pages that contain no block.
    pub page_cache: u64,
    /// Free bytes among blocks, where the allocator counts them.
    pub bin_unused: u64,
    /// The meaning of the remaining bytes: `committed` less blocks and less the other fields.
    pub rest: HeapRest,
}

/// The meaning of an allocator's committed bytes that are neither blocks nor in any other
/// statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapRest {
    /// Free memory among blocks.
    BinUnused,
    /// Free memory of any sort, and bookkeeping: the allocator reports no more.
    Unused,
    /// Blocks of code other than Rust that uses the same allocator, and caches that count as
    /// blocks.
    OtherCode,
}

impl HeapStatistics {
    /// Creates the statistics of an allocator that reports only its committed bytes.
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

    /// Returns the bytes of the C library's malloc in all blocks, with their headers, thread caches
    /// and the arenas' bookkeeping.
    pub(crate) fn in_use(&self) -> u64 {
        self.committed.saturating_sub(self.page_cache).saturating_sub(self.bin_unused)
    }

    /// Divides the committed bytes, so that `blocks` blocks with `allocated` usable bytes and the
    /// parts add up to them.
    #[must_use]
    pub(crate) fn divide(&self, allocated: u64, blocks: u64) -> HeapDivision {
        let bookkeeping = self.bookkeeping.saturating_add(self.header.saturating_mul(blocks));
        let named = [allocated, bookkeeping, self.page_cache, self.bin_unused];
        let named = named.into_iter().fold(0, u64::saturating_add);
        // The allocator and the counters are read one after the other, so the rest of a busy moment
        // may come out negative.
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

/// The memory of an allocator besides the program's own blocks, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapDivision {
    pub(crate) bookkeeping: u64,
    pub(crate) page_cache: u64,
    pub(crate) bin_unused: u64,
    pub(crate) unused: u64,
    pub(crate) other_code: u64,
}

impl HeapDivision {
    /// Returns the bytes that hold no block.
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
