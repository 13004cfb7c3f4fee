//! Defines a claim, a reporter's statement about one block, and the answer of the tracker.

/// A statement of a reporter about one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// An address in the block, as the reporter passed it.
    pub address: usize,
    /// The size in bytes with which the block was allocated, if the reporter has it.
    pub size: Option<usize>,
    /// The position of the address within the block.
    pub place: Place,
}

/// The position of a claimed address within its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first byte. Any other position is a defect of the reporter.
    Start,
    /// Any byte. An address outside all blocks is no defect.
    Inside,
}

/// The tracker's answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The bytes to count.
    pub bytes: usize,
    /// The block that contains the address.
    pub block: Option<Block>,
    /// The defect of the claim, if there is one.
    pub wrong: Option<Wrong>,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of its first byte.
    pub start: usize,
    /// The size in bytes with which it was allocated.
    pub requested: usize,
    /// The bytes that the program may use, slop included.
    pub usable: usize,
    /// A number that distinguishes this block from a later one at the same address.
    pub identity: u64,
}

/// A defect of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wrong {
    /// No block of the program's allocator contains the address.
    NonHeap,
    /// The address is inside a block, not at its start.
    Interior,
    /// The block was allocated with a different size.
    Partial,
    /// No defect: the table is incomplete and does not contain this block.
    Untracked,
}
