//! Referrers of a block in a scan dump: the words that point at it, and the chains of blocks that
//! lead to it.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::{error, fmt};

use rustc_hash::FxHashMap;

use super::clamp::ClampError;
use super::links::{Link, Links};
use crate::read::Dump;

/// The number of chains to find.
const MOST_CHAINS: usize = 5;

/// The error for an address without referrers to search.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReferrersError {
    /// The dump has no contents, or it is damaged.
    Dump(ClampError),
    /// No block of the dump has this address.
    NoBlock(u64),
}

impl fmt::Display for ReferrersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dump(error) => error.fmt(f),
            Self::NoBlock(address) => write!(
                f,
                "no block holds 0x{address:x}: name an address of this dump, in hexadecimal, \
                 as `addr` or `block addresses` has it"
            ),
        }
    }
}

impl error::Error for ReferrersError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Dump(error) => Some(error),
            Self::NoBlock(_) => None,
        }
    }
}

/// A word of one block that points into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Referrer {
    /// The index of the block that contains the word.
    pub block: usize,
    /// The offset of the word in that block, in bytes.
    pub at: u64,
    /// The offset in the other block that it points at, in bytes.
    pub into: u64,
}

impl From<&Link> for Referrer {
    fn from(link: &Link) -> Self {
        Self { block: link.from as usize, at: link.at.into(), into: link.into.into() }
    }
}

/// A chain of blocks, each of which points at the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chain {
    /// The links from the inside out: the first points at the target.
    pub links: Vec<Referrer>,
    /// True if the last link comes from a block of the chain; otherwise nothing points at the last
    /// block.
    pub is_cycle: bool,
}

/// The block at an address, and what points at it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockReferrers {
    /// The index of the block in the dump.
    pub block: usize,
    /// The offset of the address in the block, in bytes.
    pub offset: u64,
    /// Every word that points into it.
    pub referrers: Vec<Referrer>,
    /// The shortest chains to blocks that nothing in the heap points at, and some cycles on the
    /// way.
    pub chains: Vec<Chain>,
}

/// Finds the words and chains that point at the block with this address.
///
/// # Errors
///
/// If the dump is not a scan, if it is damaged, or if no block contains the address.
pub fn referrers(dump: &Dump, address: u64) -> Result<BlockReferrers, ReferrersError> {
    let links = Links::new(dump).map_err(ReferrersError::Dump)?;
    let found = links.block_at(address).ok_or(ReferrersError::NoBlock(address))?;
    let block = found.block;
    Ok(BlockReferrers {
        block: block as usize,
        offset: found.offset,
        referrers: links.to(block).iter().map(Into::into).collect(),
        chains: chains(&links, block),
    })
}

/// Finds chains by a breadth-first search outwards from the target.
fn chains(links: &Links<'_>, target: u32) -> Vec<Chain> {
    // By visited block: its link towards the target.
    let mut towards: FxHashMap<u32, Option<Link>> = FxHashMap::default();
    towards.insert(target, None);
    let mut queue = VecDeque::from([target]);
    let (mut ends, mut cycles) = (Vec::new(), Vec::new());
    while let Some(block) = queue.pop_front() {
        let others = links.to(block).iter().filter(|link| link.from != block);
        let mut has_other = false;
        for link in others {
            has_other = true;
            if let Entry::Vacant(place) = towards.entry(link.from) {
                place.insert(Some(*link));
                queue.push_back(link.from);
            } else if cycles.len() < MOST_CHAINS && is_on_path(&towards, block, link.from) {
                let mut links = path(&towards, block);
                links.push(link.into());
                cycles.push(Chain { links, is_cycle: true });
            }
        }
        if !has_other && block != target {
            ends.push(Chain { links: path(&towards, block), is_cycle: false });
        }
        if ends.len() == MOST_CHAINS {
            break;
        }
    }
    // Chains that end are more useful than cycles.
    let room = MOST_CHAINS - ends.len();
    ends.extend(cycles.into_iter().take(room));
    ends
}

/// Returns whether `wanted` is on the path from `block` to the target.
fn is_on_path(towards: &FxHashMap<u32, Option<Link>>, mut block: u32, wanted: u32) -> bool {
    loop {
        if block == wanted {
            return true;
        }
        match towards.get(&block) {
            Some(Some(link)) => block = link.to,
            _ => return false,
        }
    }
}

/// Returns the links from the target out to `block`.
fn path(towards: &FxHashMap<u32, Option<Link>>, mut block: u32) -> Vec<Referrer> {
    let mut path = Vec::new();
    while let Some(Some(link)) = towards.get(&block) {
        path.push(link.into());
        block = link.to;
    }
    path.reverse();
    path
}
