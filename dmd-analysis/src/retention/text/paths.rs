//! Blocks, and the paths that keep them alive.

use std::io::{self, Write};

use super::words::{bytes, count, cut};
use crate::analysis::number::{commas, percent};
use crate::retention::Retention;
use crate::retention::roots::{ExternalRoot, HandleCount};
use crate::retention::step::{Step, StepPlace};
use crate::retention::why_alive::{PathToRoot, WhyAlive};

/// Writes the paths that keep blocks alive.
///
/// # Errors
///
/// If writing fails.
pub fn write_why_alive(
    retention: &Retention<'_>,
    why: &WhyAlive,
    out: &mut dyn Write,
) -> io::Result<()> {
    let share = percent(why.retained.into(), retention.heap().into());
    let retained = format!("{}, {share:.2}%", bytes(why.retained));
    if let Some(block) = why.block {
        writeln!(out, "{}", retention.describe(block))?;
        let site = retention.sites.get(retention.dump.blocks.at(block).kind.alloc);
        for (at, frame) in site.frames.iter().enumerate() {
            let before = if at == 0 { "allocated at" } else { "            " };
            writeln!(out, "  {before} {}", cut(frame, retention.options.width, 15))?;
        }
        writeln!(out, "  retains {retained} of the heap")?;
        match why.dominator.as_ref().map(|step| retention.place(step)) {
            Some(place) => {
                let place = cut(&place, retention.options.width, 33);
                writeln!(out, "  every path to it leads through {place}")?;
            }
            None => writeln!(out, "  no block or static is on every path to it")?,
        }
        let paths = why.paths.len() as u64;
        match paths {
            1 => writeln!(out, "\nThe shortest path to it:")?,
            _ => writeln!(out, "\nThe {} shortest paths to it:", commas(paths.into()))?,
        }
    } else {
        let blocks = count(why.blocks as u64, "block");
        writeln!(out, "{blocks}, {}; together they retain {retained}", bytes(why.own))?;
        writeln!(out, "\nBy the shortest path to each:")?;
    }
    for (number, path) in (1..).zip(&why.paths) {
        write_path(retention, number, path, why, out)?;
    }
    match why.blocks_by_other_paths {
        0 => Ok(()),
        others => writeln!(out, "     … and {} by other ways", count(others, "block")),
    }
}

/// The number of steps above which only the ends of a path are printed.
const MOST_STEPS: usize = 30;

fn write_path(
    retention: &Retention<'_>,
    number: usize,
    path: &PathToRoot,
    why: &WhyAlive,
    out: &mut dyn Write,
) -> io::Result<()> {
    let passed: u64 = path.steps.iter().map(|step| step.alike + 1).sum();
    let steps = count(passed.saturating_sub(1), "step");
    match why.block {
        Some(_) => writeln!(out, "{number:>3}. {steps}")?,
        None => {
            let (blocks, own) = (count(path.blocks, "block"), bytes(path.bytes));
            writeln!(out, "{number:>3}. {blocks}, {own}; to this one by {steps}")?;
        }
    }
    write_steps(retention, &path.steps, "     ", out)
}

/// Writes the steps of a path, one line each.
pub(super) fn write_steps(
    retention: &Retention<'_>,
    steps: &[Step],
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let omitted = match steps.len() {
        0..=MOST_STEPS => 0..0,
        count => MOST_STEPS / 2..count - MOST_STEPS / 2,
    };
    for (at, step) in steps.iter().enumerate().filter(|(at, _)| !omitted.contains(at)) {
        if at == omitted.end && at > 0 {
            writeln!(out, "{indent}  … {} more steps", commas(omitted.len() as i128))?;
        }
        if step.alike > 0 {
            writeln!(
                out,
                "{indent}  … {} more of the same kind in a row",
                commas(step.alike.into())
            )?;
        }
        let arrow = if at == 0 { "" } else { "→ " };
        // The pointer is more useful than the middle of a type.
        let by = cut(&pointer(retention, step), retention.options.width / 2, 0);
        let before = indent.len() + 2 + by.chars().count();
        writeln!(
            out,
            "{indent}{arrow}{}{by}",
            cut(&retention.place(step), retention.options.width, before)
        )?;
    }
    Ok(())
}

/// Returns the pointer of a step, `, by subject::Document.path (byte 8)`. The type is left out if
/// the line before has it.
fn pointer(retention: &Retention<'_>, step: &Step) -> String {
    let Some(pointer) = &step.pointer else { return String::new() };
    let into = match pointer.into {
        0 => String::new(),
        into => format!(", into byte {}", commas(into.into())),
    };
    let at = commas(pointer.at.into());
    match &pointer.field {
        Some(field) => {
            let of = retention
                .sites
                .get(retention.dump.blocks.at(pointer.block).kind.alloc)
                .block_type
                .describe();
            let owner = field.rfind('.').filter(|&dot| of.contains(&field[..dot]));
            format!(", by {} (byte {at}{into})", &field[owner.unwrap_or(0)..])
        }
        None => format!(", by byte {at}{into}"),
    }
}

impl Retention<'_> {
    /// Returns the place that a step passes, in words.
    fn place(&self, step: &Step) -> String {
        match &step.place {
            StepPlace::Static(name) => format!("static {name}"),
            StepPlace::Outside(name) => name.clone(),
            StepPlace::External(root) => root.describe(),
            StepPlace::Cycle { blocks, external: ExternalRoot::Unknown, handles } => {
                let is_leaked = *handles == HandleCount::Leaked;
                let (leaked, rest) = match is_leaked {
                    true => ("leaked ", ""),
                    false => ("", " that nothing outside points at"),
                };
                format!("a {leaked}cycle of {}{rest}", count(*blocks, "block"))
            }
            StepPlace::Cycle { blocks, external, .. } => {
                format!("a cycle of {}, {}", count(*blocks, "block"), external.describe())
            }
            StepPlace::Block(block) => self.describe(*block),
        }
    }

    /// Returns a block in words: `0x55d0: 112 bytes, [String]`.
    fn describe(&self, block: usize) -> String {
        let size = bytes(self.dump.blocks.at(block).usable());
        let what = self.sites.get(self.dump.blocks.at(block).kind.alloc).block_type.describe();
        format!("0x{:x}: {size}, {what}", self.address(block))
    }
}
