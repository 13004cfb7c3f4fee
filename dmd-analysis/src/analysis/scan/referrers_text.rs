//! The referrers of a block as text.

use std::io::{self, Write};

use super::referrers::{BlockReferrers, Chain, Referrer};
use crate::analysis::frames::{Sites, Style, reporter};
use crate::analysis::number::commas;
use crate::analysis::options::ExplainOptions;
use crate::read::{Dump, Holder};

/// Writes a block, one line for each word that points at it, and the chains.
///
/// # Errors
///
/// If writing fails.
pub fn write_referrers(
    dump: &Dump,
    referred: &BlockReferrers,
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
    fn write_block(&self, referred: &BlockReferrers, out: &mut dyn Write) -> io::Result<()> {
        let block = self.dump.blocks.at(referred.block);
        writeln!(out, "{}", self.describe(referred.block))?;
        let (req, slop) = (commas(block.req.into()), commas(block.slop.into()));
        writeln!(out, "  {req} bytes requested, {slop} slop")?;
        if referred.offset > 0 {
            writeln!(out, "  the address is at byte {} of it", commas(referred.offset.into()))?;
        }
        let site = self.sites.get(block.kind.alloc);
        for (at, frame) in site.frames.iter().enumerate() {
            writeln!(out, "  {} {frame}", if at == 0 { "allocated at" } else { "            " })?;
        }
        for (at, trace) in self.dump.reports(&block).unwrap_or_default().iter().enumerate() {
            let again = if at == 0 { "reported" } else { "and again" };
            writeln!(out, "  {again} by {}", reporter(self.dump, Some(*trace), self.style))?;
        }
        if self.dump.reports(&block).is_none() && self.dump.extension.is_some() {
            writeln!(out, "  reported by nobody")?;
        }
        Ok(())
    }

    /// Returns a block in words: `0x55d0: 112 bytes, [String]`.
    fn describe(&self, index: usize) -> String {
        let block = self.dump.blocks.at(index);
        let what = self.sites.get(block.kind.alloc).block_type.describe();
        format!("{}: {} bytes, {what}", self.address(index), commas(block.usable().into()))
    }

    fn address(&self, index: usize) -> String {
        let address = self.dump.blocks.at(index).addr.map_or(0, u64::from);
        format!("0x{address:x}")
    }

    /// Returns a link in words: `byte 8 of 0x55d0: 112 bytes, [String] → its start`.
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
        writeln!(out, "\n{}:", if chain.is_cycle { "A cycle" } else { "A chain" })?;
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
        if chain.is_cycle {
            writeln!(out, "  {} came before: they point at each other", self.address(last.block))
        } else {
            writeln!(out, "  nothing in the heap points there: {}", self.outside(last.block))
        }
    }

    /// Returns what may hold a block that nothing in the heap points at.
    fn outside(&self, index: usize) -> String {
        let holder = self.dump.blocks.at(index).kind.held_by;
        let holders = self.dump.extension.as_ref().map(|ours| &ours.holders);
        match holder.and_then(|id| holders?.get(&id)) {
            Some(Holder::Static(place)) if place.name.is_some() => {
                format!("static {} holds it", place.name.as_deref().unwrap_or_default())
            }
            _ => "a static, a thread's stack or nothing at all holds it".to_owned(),
        }
    }
}
