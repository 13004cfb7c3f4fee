//! The result of a census: a tree of amounts.

use super::amount::Amount;
use super::breakdown::Breakdown;
use crate::axis::Key;

/// A counted heap.
#[derive(Debug, Clone, PartialEq)]
pub struct Census {
    pub(super) breakdown: Breakdown,
    pub(super) root: Node,
    pub(super) is_sampled: bool,
    pub(super) is_difference: bool,
    pub(super) notes: Vec<String>,
}

impl Census {
    /// Adds blocks of which only the sum is known: those from before tracking began or while it was
    /// off. They are a group of their own at the root.
    pub fn add_untracked(&mut self, blocks: u64, bytes: u64) {
        let amount = Amount::of_sum(blocks, bytes);
        if amount != Amount::default() {
            add_untracked(&mut self.root, amount);
        }
    }

    /// Returns the breakdown that the heap is counted by.
    #[must_use]
    pub fn breakdown(&self) -> &Breakdown {
        &self.breakdown
    }

    /// Returns the node of all blocks.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns whether amounts are estimates from a sample.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Returns whether amounts are the difference between two censuses.
    #[must_use]
    pub fn is_difference(&self) -> bool {
        self.is_difference
    }

    /// Returns sentences about facts that the source does not contain.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The blocks at one place of a breakdown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// Their number and bytes.
    pub amount: Amount,
    /// The way in which they are counted there.
    pub counted: Counted,
}

fn add_untracked(node: &mut Node, amount: Amount) {
    node.amount.add(&amount);
    match &mut node.counted {
        Counted::Count => {}
        Counted::Bucket(bucketed) => bucketed.left_out.add(&amount),
        Counted::Groups(groups) => {
            let node = Node { amount, counted: Counted::Count };
            groups.push(Group { key: Key::Fixed(UNTRACKED), node });
        }
        Counted::Several(several) => {
            several.iter_mut().for_each(|group| add_untracked(&mut group.node, amount));
        }
    }
}

/// The key of untracked blocks.
pub(super) const UNTRACKED: &str = "untracked";

/// The way in which blocks are counted at one place of a breakdown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Counted {
    /// They are only added up.
    Count,
    /// They are listed.
    Bucket(Bucketed),
    /// They are split. The groups' amounts add up to the node's.
    Groups(Vec<Group>),
    /// They are split in several ways, which the keys name. Each has the amount of the node.
    Several(Vec<Group>),
}

/// Blocks with the same key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// The key.
    pub key: Key,
    /// The blocks.
    pub node: Node,
}

/// A list of blocks, those with the most bytes first.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Bucketed {
    /// The lines.
    pub listed: Vec<Blocks>,
    /// The sum of the blocks that are not listed.
    pub left_out: Amount,
}

/// Blocks that are alike, or a single one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Blocks {
    /// The address of a single block, where the source contains addresses.
    pub address: Option<u64>,
    /// Their number and bytes.
    pub amount: Amount,
    /// The usable bytes of one block.
    pub size: u64,
    /// The part of those bytes that was not requested.
    pub slop: u64,
    /// Their age in milliseconds, where the source contains it.
    pub age_ms: Option<u64>,
}

impl Blocks {
    /// Returns a line such as `64 bytes at 7f10` or `64 bytes each`.
    #[must_use]
    pub fn describe(&self) -> String {
        let place =
            self.address.map_or_else(|| "each".to_owned(), |address| format!("at {address:x}"));
        let age = self.age_ms.map_or_else(String::new, |age| format!(", {age} ms old"));
        format!("{} bytes {place}{age}", self.size)
    }
}
