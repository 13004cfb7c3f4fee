//! What a census comes to: amounts, and what they are made of.

use std::sync::Arc;

use super::breakdown::Breakdown;
use super::item::Amount;

/// A heap, counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Census {
    pub(super) breakdown: Breakdown,
    pub(super) root: Node,
    pub(super) is_sampled: bool,
    pub(super) is_difference: bool,
    pub(super) notes: Vec<String>,
}

impl Census {
    /// What was asked.
    #[must_use]
    pub fn breakdown(&self) -> &Breakdown {
        &self.breakdown
    }

    /// All blocks.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether amounts are estimates, made from a sample.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Whether amounts are what one census has beyond another.
    #[must_use]
    pub fn is_difference(&self) -> bool {
        self.is_difference
    }

    /// What could not be found out, as sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Blocks that came to one place of a breakdown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// What they amount to.
    pub amount: Amount,
    /// What became of them there.
    pub counted: Counted,
}

/// What became of blocks at one place of a breakdown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Counted {
    /// Nothing more.
    Count,
    /// They are listed.
    Bucket(Bucketed),
    /// They were told apart. The groups' amounts add up to the node's.
    Groups(Vec<Group>),
    /// They were told apart in several ways, as the keys say: each has the amount of the node.
    Several(Vec<Group>),
}

/// Blocks with the same answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// The answer.
    pub key: Key,
    /// The blocks.
    pub node: Node,
}

/// What the blocks of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Key {
    /// A text.
    Text(Arc<str>),
    /// Frames of their stacks.
    Stack(Arc<[Arc<str>]>),
    /// They are one of the groups that are always there.
    Fixed(&'static str),
}

impl Key {
    /// Returns the key of a group that is named by a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Key::Text(text.into())
    }

    /// In a line.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Key::Text(text) => text.to_string(),
            Key::Stack(frames) => frames.join(" < "),
            Key::Fixed(name) => (*name).to_owned(),
        }
    }
}

/// Blocks that are listed, those with the most bytes first.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Bucketed {
    /// The lines.
    pub listed: Vec<Blocks>,
    /// What was left out.
    pub left_out: Amount,
}

/// Blocks that are alike, or a single one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Blocks {
    /// Where the block is, where blocks are known one by one.
    pub address: Option<u64>,
    /// What they amount to.
    pub amount: Amount,
    /// Usable bytes of one.
    pub size: u64,
    /// Those of them that were not asked for.
    pub slop: u64,
    /// How long they have lived, in milliseconds, where that is known.
    pub age_ms: Option<u64>,
}

impl Blocks {
    /// In a line: `64 bytes at 7f10`, or `64 bytes each`.
    #[must_use]
    pub fn describe(&self) -> String {
        let place =
            self.address.map_or_else(|| "each".to_owned(), |address| format!("at {address:x}"));
        let age = self.age_ms.map_or_else(String::new, |age| format!(", {age} ms old"));
        format!("{} bytes {place}{age}", self.size)
    }
}
