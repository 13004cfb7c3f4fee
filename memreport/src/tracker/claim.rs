//! Defines a claim, a reporter's statement about one block, and the answer of the tracker.

/// A statement about a block, made by whoever measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The address that was given.
    pub address: usize,
    /// The bytes that were asked of the allocator, where the claimant knows.
    pub size: Option<usize>,
    /// Where in the block the address lies.
    pub place: Place,
}

/// Where in its block a claimed address lies, as the claimant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the first byte; anything else is a defect of the reporter.
    Start,
    /// Anywhere; not being in a block at all is no defect.
    Inside,
}

/// What the tracker knows of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The bytes to report.
    pub bytes: usize,
    /// The block that holds the address.
    pub block: Option<Block>,
    /// What is wrong with the claim.
    pub wrong: Option<Wrong>,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub start: usize,
    /// The bytes that were asked for.
    pub requested: usize,
    /// The bytes that the allocator gave.
    pub usable: usize,
    /// Tells it from a later block at the same address.
    pub identity: u64,
}

/// A defect of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wrong {
    /// No block of the program's allocator is there.
    NonHeap,
    /// The address is inside a block, not at its start.
    Interior,
    /// The block has another size than was claimed.
    Partial,
    /// Nothing, as far as can be told: the tracker does not know all blocks, and not this one.
    Untracked,
}
