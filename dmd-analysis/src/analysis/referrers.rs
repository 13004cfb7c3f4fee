//! Who points at a block: the block analyser, for scan dumps. Chains lead up to what nothing in the heap points at.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::io::{self, Write};
use std::{error, fmt};

use rustc_hash::FxHashMap;

use super::clamp::ClampError;
use super::links::{Link, Links};
use super::number::commas;
use super::people::Style;
use super::sites::{ExplainOptions, Sites, reporter};
use crate::read::{Dump, Holder};

/// Chains, and circles, to look for.
const MOST_CHAINS: usize = 5;

/// Why nothing can be said of an address.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReferrersError {
    /// The dump has no contents, or is damaged.
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
                "no block holds 0x{address:x}: name an address of this dump, in hexadecimal, as `addr` or `block addresses` \
                 has it"
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

/// A word of one block that leads into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Referrer {
    /// The block that has the word, as its place in the dump.
    pub block: usize,
    /// Where the word is in it, in bytes.
    pub at: u64,
    /// How far into the other block it leads: 0 is its start.
    pub into: u64,
}

impl From<&Link> for Referrer {
    fn from(link: &Link) -> Self {
        Self { block: link.from as usize, at: link.at.into(), into: link.into.into() }
    }
}

/// Blocks that point at each other, from the one asked for outwards.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chain {
    /// Each points at the one before, the first at the block asked for.
    pub links: Vec<Referrer>,
    /// The last is a block that came before, so that they go round in a circle; else nothing points at the last.
    pub is_circle: bool,
}

/// What is known of the block at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Referred {
    /// The block, as its place in the dump.
    pub block: usize,
    /// How far into it the address is, in bytes.
    pub offset: u64,
    /// Every word that leads into it.
    pub referrers: Vec<Referrer>,
    /// The shortest ways to blocks that nothing in the heap points at, and some circles on the way.
    pub chains: Vec<Chain>,
}

/// Finds out who points at the block that has this address.
///
/// # Errors
///
/// See [`ReferrersError`].
pub fn referrers(dump: &Dump, address: u64) -> Result<Referred, ReferrersError> {
    let links = Links::new(dump).map_err(ReferrersError::Dump)?;
    let (block, offset) = links.block_at(address).ok_or(ReferrersError::NoBlock(address))?;
    Ok(Referred {
        block: block as usize,
        offset,
        referrers: links.to(block).iter().map(Into::into).collect(),
        chains: chains(&links, block),
    })
}

/// Outwards from a block, nearest first.
fn chains(links: &Links, target: u32) -> Vec<Chain> {
    // For each block that was met, the link by which it leads towards the target.
    let mut towards: FxHashMap<u32, Option<Link>> = FxHashMap::default();
    towards.insert(target, None);
    let mut queue = VecDeque::from([target]);
    let (mut ends, mut circles) = (Vec::new(), Vec::new());
    while let Some(block) = queue.pop_front() {
        let others = links.to(block).iter().filter(|link| link.from != block);
        let mut has_other = false;
        for link in others {
            has_other = true;
            if let Entry::Vacant(place) = towards.entry(link.from) {
                place.insert(Some(*link));
                queue.push_back(link.from);
            } else if circles.len() < MOST_CHAINS && is_on_way(&towards, block, link.from) {
                let mut way = way(&towards, block);
                way.push(link.into());
                circles.push(Chain { links: way, is_circle: true });
            }
        }
        if !has_other && block != target {
            ends.push(Chain { links: way(&towards, block), is_circle: false });
        }
        if ends.len() == MOST_CHAINS {
            break;
        }
    }
    // Where a way leads out, circles are worth less.
    let room = MOST_CHAINS - ends.len();
    ends.extend(circles.into_iter().take(room));
    ends
}

/// Whether `wanted` is on the way from `block` to the target.
fn is_on_way(towards: &FxHashMap<u32, Option<Link>>, mut block: u32, wanted: u32) -> bool {
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

fn way(towards: &FxHashMap<u32, Option<Link>>, mut block: u32) -> Vec<Referrer> {
    let mut way = Vec::new();
    while let Some(Some(link)) = towards.get(&block) {
        way.push(link.into());
        block = link.to;
    }
    way.reverse();
    way
}

/// Writes what is known of a block, a line for each word that leads to it, and the chains.
///
/// # Errors
///
/// If writing fails.
pub fn write_referrers(
    dump: &Dump,
    referred: &Referred,
    options: &ExplainOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let style = Style { root: options.root.as_deref(), width: options.width };
    let sites = Sites::new(dump, options.max_frames, &style);
    let view = View { dump, sites, style: &style };
    view.write_block(referred, out)?;
    let count = referred.referrers.len();
    let head = match count {
        0 => format!("Nothing in the heap points at it: {}.", view.outside(referred.block)),
        1 => "1 word in the heap points at it:".to_owned(),
        _ => format!("{} words in the heap point at it:", commas(count as i128)),
    };
    writeln!(out, "\n{head}")?;
    for (number, link) in (1..).zip(referred.referrers.iter().take(options.top)) {
        let number: usize = number;
        writeln!(out, "{number:>3}. {}", view.link(*link, referred.block))?;
    }
    if count > options.top {
        writeln!(out, "     … and {} more", commas((count - options.top) as i128))?;
    }
    for chain in &referred.chains {
        view.write_chain(chain, referred.block, out)?;
    }
    Ok(())
}

struct View<'d> {
    dump: &'d Dump,
    sites: Sites,
    style: &'d Style<'d>,
}

impl View<'_> {
    fn write_block(&self, referred: &Referred, out: &mut dyn Write) -> io::Result<()> {
        let block = &self.dump.blocks[referred.block];
        writeln!(out, "{}", self.describe(referred.block))?;
        let (req, slop) = (commas(block.req.into()), commas(block.slop.into()));
        writeln!(out, "  {req} bytes requested, {slop} slop")?;
        if referred.offset > 0 {
            writeln!(out, "  the address is at byte {} of it", commas(referred.offset.into()))?;
        }
        let site = self.sites.get(block.alloc);
        for (at, frame) in site.frames.iter().enumerate() {
            writeln!(out, "  {} {frame}", if at == 0 { "allocated at" } else { "            " })?;
        }
        for (at, trace) in self.dump.reports(block).unwrap_or_default().iter().enumerate() {
            let again = if at == 0 { "reported" } else { "and again" };
            writeln!(out, "  {again} by {}", reporter(self.dump, Some(*trace), self.style))?;
        }
        if self.dump.reports(block).is_none() && self.dump.extension.is_some() {
            writeln!(out, "  reported by nobody")?;
        }
        Ok(())
    }

    /// `0x55d0: 112 bytes, [String]`
    fn describe(&self, index: usize) -> String {
        let block = &self.dump.blocks[index];
        let what = self.sites.get(block.alloc).block_type.describe();
        format!("{}: {} bytes, {what}", self.address(index), commas(block.usable().into()))
    }

    fn address(&self, index: usize) -> String {
        let address = self.dump.blocks[index].addr.map_or(0, u64::from);
        format!("0x{address:x}")
    }

    /// `byte 8 of 0x55d0 → its start: 112 bytes, [String]`
    fn link(&self, link: Referrer, to: usize) -> String {
        let (at, block) = (commas(link.at.into()), self.describe(link.block));
        let into = match link.into {
            0 => "its start".to_owned(),
            into => format!("byte {} of it", commas(into.into())),
        };
        let itself = if link.block == to { ", which is the block itself" } else { "" };
        format!("byte {at} of {block}{itself} → {into}")
    }

    fn write_chain(&self, chain: &Chain, target: usize, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{}:", if chain.is_circle { "A circle" } else { "A chain" })?;
        writeln!(out, "  {}", self.address(target))?;
        for link in &chain.links {
            let into = match link.into {
                0 => String::new(),
                into => format!(" (into byte {})", commas(into.into())),
            };
            let (at, block) = (commas(link.at.into()), self.describe(link.block));
            writeln!(out, "  ← byte {at} of {block}{into}")?;
        }
        let Some(last) = chain.links.last() else { return Ok(()) };
        if chain.is_circle {
            writeln!(out, "  {} came before: they point at each other", self.address(last.block))
        } else {
            writeln!(out, "  nothing in the heap points there: {}", self.outside(last.block))
        }
    }

    /// What may hold a block that nothing in the heap points at.
    fn outside(&self, index: usize) -> String {
        let holder = self.dump.blocks[index].held_by;
        let holders = self.dump.extension.as_ref().map(|ours| &ours.holders);
        match holder.and_then(|id| holders?.get(&id)) {
            Some(Holder::Static(place)) if place.name.is_some() => {
                format!("static {} holds it", place.name.as_deref().unwrap_or_default())
            }
            _ => "a static, a thread's stack or nothing at all holds it".to_owned(),
        }
    }
}
