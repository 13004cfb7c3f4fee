//! A byte for each block: whether it was reached, and the evidence for its path from a root.

/// The evidence for the path from a root to a block, the best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::ownership) enum Rank {
    /// Through typed fields.
    #[default]
    Typed,
    /// Also through words that may be pointers.
    Words,
    /// Also through such words of a library's function.
    LibraryStackWords,
    /// Not from a root of the dump.
    Unrooted,
}

/// The paths to all blocks.
#[derive(Debug)]
pub(super) struct PathFlags {
    /// By block: [`REACHED`], [`BELOW_STACK`] and [`RENEWED`], and the rank from [`RANK`] on.
    of: Vec<u8>,
}

/// The block was reached.
const REACHED: u8 = 1;

/// The path begins at a stack or a register.
const BELOW_STACK: u8 = 1 << 1;

/// The block got its layout only after its pointers had been followed without one.
const RENEWED: u8 = 1 << 2;

/// The place of the rank in the byte.
const RANK: u32 = 3;

impl PathFlags {
    /// Makes the paths to this many blocks, of which none is reached.
    pub(super) fn new(blocks: usize) -> Self {
        Self { of: vec![0; blocks] }
    }

    /// Notes that a block is reached.
    pub(super) fn reach(&mut self, block: u32, rank: Rank, is_below_stack: bool) {
        let below = if is_below_stack { BELOW_STACK } else { 0 };
        self.of[block as usize] = REACHED | below | (rank as u8) << RANK;
    }

    /// Notes that a block got a layout later.
    pub(super) fn renew(&mut self, block: u32) {
        self.of[block as usize] |= RENEWED;
    }

    /// Returns whether a block is reached.
    pub(super) fn is_reached(&self, block: u32) -> bool {
        self.has(block, REACHED)
    }

    /// Returns whether the path to a block begins at a stack or a register. That of a root does
    /// not.
    pub(super) fn is_below_stack(&self, node: u32) -> bool {
        self.has(node, BELOW_STACK)
    }

    /// Returns whether a block got its layout later.
    pub(super) fn is_renewed(&self, node: u32) -> bool {
        self.has(node, RENEWED)
    }

    /// Returns the evidence for the path to a block; `None` if the node is not a block.
    pub(super) fn rank(&self, node: u32) -> Option<Rank> {
        let of = self.of.get(node as usize)?;
        let ranks = [Rank::Typed, Rank::Words, Rank::LibraryStackWords, Rank::Unrooted];
        ranks.get(usize::from(of >> RANK)).copied()
    }

    fn has(&self, node: u32, flag: u8) -> bool {
        self.of.get(node as usize).is_some_and(|of| of & flag != 0)
    }
}
