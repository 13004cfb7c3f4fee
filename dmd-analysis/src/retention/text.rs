//! Who holds whom, in lines for a terminal.

use std::io::{self, Write};

use super::Holds;
use super::circle::{Circle, Counted};
use super::groups::HeldGroup;
use super::held::{Held, Way};
use super::roots::Outside;
use super::step::{Place, Step};
use super::tree::{Retained, RetainedName};
use crate::analysis::number::{commas, percent};
use crate::analysis::people::shorten;

/// Writes the tree of what is retained.
///
/// # Errors
///
/// If writing fails.
pub fn write_tree(holds: &Holds<'_>, tree: &Retained, out: &mut dyn Write) -> io::Result<()> {
    write_heading(holds, out)?;
    let columns = Columns::new(holds);
    columns.write_names("blocks", out)?;
    let mut pending: Vec<(usize, &Retained)> = tree.kids.iter().rev().map(|kid| (0, kid)).collect();
    while let Some((depth, node)) = pending.pop() {
        let is_of_blocks = matches!(node.name, RetainedName::Blocks { .. });
        let own = is_of_blocks.then_some((node.own, node.blocks));
        columns.write(
            node.bytes,
            own,
            &format!("{:1$}{2}", "", 2 * depth, name(&node.name)),
            out,
        )?;
        pending.extend(node.kids.iter().rev().map(|kid| (depth + 1, kid)));
    }
    Ok(())
}

/// Writes groups of blocks by what each retains.
///
/// # Errors
///
/// If writing fails.
pub fn write_groups(
    holds: &Holds<'_>,
    (groups, count): &(Vec<HeldGroup>, usize),
    out: &mut dyn Write,
) -> io::Result<()> {
    write_heading(holds, out)?;
    let columns = Columns::new(holds);
    columns.write_names("blocks", out)?;
    for group in groups {
        columns.write(group.retained, Some((group.own, group.blocks)), &group.name, out)?;
    }
    match count - groups.len() {
        0 => Ok(()),
        more => writeln!(out, "{:>1$} … and {2} more", "", columns.bytes, commas(more as i128)),
    }
}

fn write_heading(holds: &Holds<'_>, out: &mut dyn Write) -> io::Result<()> {
    let program = holds.dump.extension.as_ref().and_then(|ours| ours.program.as_deref());
    let program = program.map_or("the heap", |path| path.rsplit('/').next().unwrap_or(path));
    let blocks = count(holds.dump.blocks.len() as u64, "block");
    writeln!(out, "{program}: {} in {blocks}\n", bytes(holds.heap()))
}

/// Numbers in front of names, as wide as the heap's.
struct Columns {
    heap: u64,
    bytes: usize,
    blocks: usize,
    /// What a line may take; 0 is any number.
    width: usize,
}

impl Columns {
    fn new(holds: &Holds<'_>) -> Self {
        let wide = |number: i128, least: usize| commas(number).len().max(least);
        let heap = holds.heap();
        Self {
            heap,
            bytes: wide(heap.into(), "retained".len()),
            blocks: wide(holds.dump.blocks.len() as i128, "blocks".len()),
            width: holds.options.width,
        }
    }

    fn write_names(&self, blocks: &str, out: &mut dyn Write) -> io::Result<()> {
        let Self { bytes, blocks: wide, .. } = *self;
        writeln!(out, "{:>bytes$}   share {:>bytes$} {blocks:>wide$}", "retained", "own")
    }

    fn write(
        &self,
        retained: u64,
        own: Option<(u64, u64)>,
        name: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Self { bytes, blocks: wide, width, heap } = *self;
        let share = format!("{:.2}%", percent(retained.into(), heap.into()));
        let retained = commas(retained.into());
        let of = |number: Option<u64>| number.map_or_else(String::new, |n| commas(n.into()));
        let (own, blocks) = (of(own.map(|own| own.0)), of(own.map(|own| own.1)));
        let name = fit(name, width, bytes + 1 + 7 + 1 + bytes + 1 + wide + 2);
        writeln!(out, "{retained:>bytes$} {share:>7} {own:>bytes$} {blocks:>wide$}  {name}")
    }
}

/// A name in what is left of the line: where it is too long, what stands behind its last comma gets half of that, and is cut.
fn fit(name: &str, width: usize, before: usize) -> String {
    let room = width.saturating_sub(before).max(LEAST);
    match name.rfind(", ").map(|comma| name.split_at(comma)) {
        Some((what, site)) if width > 0 && name.chars().count() > room => {
            let left = room.saturating_sub(what.chars().count());
            let site = shorten(site, left.max(room / 2));
            shorten(what, room - site.chars().count()) + &site
        }
        _ => cut(name, width, before),
    }
}

/// The least that is shown of a name, in columns.
const LEAST: usize = 24;

/// The text without its middle, if it is too long for the line.
fn cut(text: &str, width: usize, before: usize) -> String {
    match width {
        0 => text.to_owned(),
        width => shorten(text, width.saturating_sub(before).max(LEAST)),
    }
}

fn name(name: &RetainedName) -> String {
    match name {
        RetainedName::Heap => "(all)".to_owned(),
        RetainedName::Static(name) => format!("static {name}"),
        RetainedName::Outside(outside) => outside.describe(),
        RetainedName::Shared => "held by several, and by none alone".to_owned(),
        RetainedName::Cycles(cycles, Counted::Leaked) => count(*cycles, "leaked cycle"),
        RetainedName::Cycles(cycles, _) => {
            format!("{} that nothing outside points at", count(*cycles, "cycle"))
        }
        RetainedName::Blocks { block_type, site, address } => {
            let address = address.map_or_else(String::new, |at| format!("0x{at:x}: "));
            // Who allocated a block of no known type is said by the frame.
            let block_type = match site {
                Some(_) => block_type.split(", allocated in").next().unwrap_or_default(),
                None => block_type,
            };
            let site = site.as_ref().map_or_else(String::new, |site| format!(", {site}"));
            format!("{address}{block_type}{site}")
        }
        RetainedName::Other(number) => format!("<other>: {}", commas((*number).into())),
    }
}

impl Outside {
    /// What is known, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Reported(by) => format!("reported by {by}"),
            Self::Skipped(field) => format!("skipped field {field}"),
            Self::Unknown => "held from a stack or a library, or leaked".to_owned(),
        }
    }
}

/// Writes the cycles that nothing outside points at.
///
/// # Errors
///
/// If writing fails.
pub fn write_circles(
    holds: &Holds<'_>,
    circles: &[Circle],
    top: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let all: u64 = circles.iter().map(|circle| circle.cycles).sum();
    if all == 0 {
        return Ok(());
    }
    let retained = circles.iter().map(|circle| circle.retained).fold(0, u64::saturating_add);
    let (cycles, them) = (count(all, "cycle"), if all == 1 { "it retains" } else { "they retain" });
    writeln!(out, "\n{cycles} that nothing outside points at; {them} {}:", bytes(retained))?;
    for (number, circle) in (1..).zip(circles.iter().take(top)) {
        let number: usize = number;
        let alike = match circle.cycles {
            1 => String::new(),
            cycles => format!("{} cycles like this retain ", commas(cycles.into())),
        };
        let blocks = count(circle.blocks, "block");
        writeln!(out, "{number:>3}. {alike}{} in a circle of {blocks}", bytes(circle.retained))?;
        writeln!(out, "     {}", verdict(circle))?;
        if let Some(site) = &circle.site {
            writeln!(out, "     allocated at {}", cut(site, holds.options.width, 18))?;
        }
        write_steps(holds, &circle.steps, "     ", out)?;
    }
    if circles.len() > top {
        writeln!(out, "     … and {} more", commas((circles.len() - top) as i128))?;
    }
    Ok(())
}

fn verdict(circle: &Circle) -> String {
    match (&circle.outside, circle.counted) {
        (Outside::Unknown, Counted::Leaked) => {
            "leaked: every handle that its blocks count is in the cycle itself".to_owned()
        }
        (Outside::Unknown, Counted::Outside(handles)) => {
            let are = if handles == 1 { "is" } else { "are" };
            format!(
                "{} {are} in no block: on a stack, in a library, or forgotten",
                count(handles, "handle")
            )
        }
        (Outside::Unknown, Counted::Unknown) => {
            "held from a stack or a library, or leaked: nothing counts its handles".to_owned()
        }
        (outside, _) => format!("held: {}", outside.describe()),
    }
}

/// Writes by which ways blocks are held.
///
/// # Errors
///
/// If writing fails.
pub fn write_held(holds: &Holds<'_>, held: &Held, out: &mut dyn Write) -> io::Result<()> {
    let share = percent(held.retained.into(), holds.heap().into());
    let retained = format!("{}, {share:.2}%", bytes(held.retained));
    if let [block] = held.blocks[..] {
        writeln!(out, "{}", holds.describe(block))?;
        let site = holds.sites.get(holds.dump.blocks[block].alloc);
        for (at, frame) in site.frames.iter().enumerate() {
            let before = if at == 0 { "allocated at" } else { "            " };
            writeln!(out, "  {before} {}", cut(frame, holds.options.width, 15))?;
        }
        writeln!(out, "  retains {retained} of the heap")?;
        match held.keeper.as_ref().map(|step| holds.place(step)) {
            Some(place) => {
                let place = cut(&place, holds.options.width, 33);
                writeln!(out, "  every way to it leads through {place}")?;
            }
            None => writeln!(out, "  no block or static is on every way to it")?,
        }
        let ways = held.ways.len() as u64;
        match ways {
            1 => writeln!(out, "\nThe shortest way to it:")?,
            _ => writeln!(out, "\nThe {} shortest ways to it:", commas(ways.into()))?,
        }
    } else {
        let blocks = count(held.blocks.len() as u64, "block");
        writeln!(out, "{blocks}, {}; together they retain {retained}", bytes(held.own))?;
        writeln!(out, "\nBy the shortest way to each:")?;
    }
    for (number, way) in (1..).zip(&held.ways) {
        write_way(holds, number, way, held, out)?;
    }
    match held.others {
        0 => Ok(()),
        others => writeln!(out, "     … and {} by other ways", count(others, "block")),
    }
}

/// Ways of more steps than these are shown by their ends.
const MOST_STEPS: usize = 30;

fn write_way(
    holds: &Holds<'_>,
    number: usize,
    way: &Way,
    held: &Held,
    out: &mut dyn Write,
) -> io::Result<()> {
    let passed: u64 = way.steps.iter().map(|step| step.alike + 1).sum();
    let steps = count(passed.saturating_sub(1), "step");
    match held.blocks.len() {
        1 => writeln!(out, "{number:>3}. {steps}")?,
        _ => {
            let (blocks, own) = (count(way.blocks, "block"), bytes(way.bytes));
            writeln!(out, "{number:>3}. {blocks}, {own}; to this one by {steps}")?;
        }
    }
    write_steps(holds, &way.steps, "     ", out)
}

fn write_steps(
    holds: &Holds<'_>,
    steps: &[Step],
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let left_out = match steps.len() {
        0..=MOST_STEPS => 0..0,
        count => MOST_STEPS / 2..count - MOST_STEPS / 2,
    };
    for (at, step) in steps.iter().enumerate().filter(|(at, _)| !left_out.contains(at)) {
        if at == left_out.end && at > 0 {
            writeln!(out, "{indent}  … {} more steps", commas(left_out.len() as i128))?;
        }
        if step.alike > 0 {
            writeln!(
                out,
                "{indent}  … {} more of the same kind in a row",
                commas(step.alike.into())
            )?;
        }
        let arrow = if at == 0 { "" } else { "→ " };
        // The word that leads there is worth more than the middle of a type.
        let by = cut(&by(holds, step), holds.options.width / 2, 0);
        let before = indent.len() + 2 + by.chars().count();
        writeln!(
            out,
            "{indent}{arrow}{}{by}",
            cut(&holds.place(step), holds.options.width, before)
        )?;
    }
    Ok(())
}

/// `, by subject::Document.path (byte 8)`; the type is left out where the line before has it.
fn by(holds: &Holds<'_>, step: &Step) -> String {
    let Some(pointer) = &step.by else { return String::new() };
    let into = match pointer.into {
        0 => String::new(),
        into => format!(", into byte {}", commas(into.into())),
    };
    let at = commas(pointer.at.into());
    match &pointer.field {
        Some(field) => {
            let of = holds.sites.get(holds.dump.blocks[pointer.block].alloc).block_type.describe();
            let owner = field.rfind('.').filter(|&dot| of.contains(&field[..dot]));
            format!(", by {} (byte {at}{into})", &field[owner.unwrap_or(0)..])
        }
        None => format!(", by byte {at}{into}"),
    }
}

impl Holds<'_> {
    /// What a step passes, in words.
    pub(crate) fn place(&self, step: &Step) -> String {
        match &step.place {
            Place::Static(name) => format!("static {name}"),
            Place::Outside(outside) => outside.describe(),
            Place::Cycle(blocks, Outside::Unknown, counted) => {
                let is_leaked = *counted == Counted::Leaked;
                let (leaked, rest) = match is_leaked {
                    true => ("leaked ", ""),
                    false => ("", " that nothing outside points at"),
                };
                format!("a {leaked}cycle of {}{rest}", count(*blocks, "block"))
            }
            Place::Cycle(blocks, outside, _) => {
                format!("a cycle of {}, {}", count(*blocks, "block"), outside.describe())
            }
            Place::Block(block) => self.describe(*block),
        }
    }

    /// `0x55d0: 112 bytes, [String]`
    fn describe(&self, block: usize) -> String {
        let size = bytes(self.dump.blocks[block].usable());
        let what = self.sites.get(self.dump.blocks[block].alloc).block_type.describe();
        format!("0x{:x}: {size}, {what}", self.address(block))
    }
}

fn bytes(number: u64) -> String {
    count(number, "byte")
}

fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", commas(number.into()), if number == 1 { "" } else { "s" })
}
