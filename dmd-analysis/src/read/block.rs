//! One entry of a dump's list of blocks, and what it refers to.

pub(crate) mod list;

use std::num::NonZeroU64;
use std::ops::Range;

/// An entry of `blockList`: one or more equal blocks.
#[derive(Debug, Clone, Copy)]
pub struct Block<'d> {
    /// The requested bytes.
    pub req: u64,
    /// The slop bytes, which the allocator added to the requested ones.
    pub slop: u64,
    /// The number of equal blocks.
    pub num: u64,
    /// The address of its first byte (scan mode).
    pub addr: Option<NonZeroU64>,
    /// Where the block comes from, and what became of it: the same for many blocks.
    pub kind: &'d BlockKind,
}

/// Properties that blocks of different sizes may have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockKind {
    /// The stack that allocated it, if one was recorded.
    pub alloc: Option<TraceId>,
    /// The number of the thread that allocated it, in the extension's threads.
    pub thread: Option<u32>,
    /// The number of the scope that it was allocated in, in the extension's scopes; 0 if there is
    /// none.
    pub scope: u16,
    /// The number of blocks that a sampled block represents; 1 if blocks are not sampled.
    pub weight: f64,
    /// Its age in milliseconds, rounded down by up to 9 %, if it was recorded.
    pub age_ms: Option<u64>,
    /// True if the blocks were freed, and are only counted (cumulative mode).
    pub freed: bool,
    /// The holder of an unreported block, if one was found.
    pub held_by: Option<HolderId>,
    /// True if the holder probably holds it through other unreported blocks.
    pub is_held_through: bool,
    pub(crate) reports: Option<Range<u32>>,
}

impl Default for BlockKind {
    /// Returns the kind of blocks of which nothing is known; none is sampled.
    fn default() -> Self {
        Self {
            alloc: None,
            thread: None,
            scope: 0,
            weight: 1.0,
            age_ms: None,
            freed: false,
            held_by: None,
            is_held_through: false,
            reports: None,
        }
    }
}

impl Block<'_> {
    /// Returns the bytes that the program can use: requested bytes and slop.
    #[must_use]
    pub fn usable(&self) -> u64 {
        self.req.saturating_add(self.slop)
    }
}

/// A stack of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub(crate) u32);

impl TraceId {
    /// Returns its index in the dump's table of stacks.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The key of a holder in [`Extension::holders`](super::Extension::holders).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HolderId(pub(crate) u32);
