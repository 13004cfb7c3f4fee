//! The columns of numbers in front of names, and the heading above them.

use std::io::{self, Write};

use super::words::{bytes, count, fit};
use crate::analysis::number::{commas, percent};
use crate::retention::Retention;

/// Writes the program, its bytes and its blocks.
pub(super) fn write_heading(retention: &Retention<'_>, out: &mut dyn Write) -> io::Result<()> {
    let program = retention.dump.extension.as_ref().and_then(|ours| ours.program.as_deref());
    let program = program.map_or("the heap", |path| path.rsplit('/').next().unwrap_or(path));
    let untracked = retention.untracked();
    let blocks = retention.dump.blocks.len() as u64 + untracked.blocks;
    let all = retention.heap() + untracked.bytes;
    writeln!(out, "{program}: {} in {}", bytes(all), count(blocks, "block"))?;
    if untracked.blocks > 0 {
        let share = percent(untracked.bytes.into(), all.into());
        let (bytes, blocks) = (bytes(untracked.bytes), count(untracked.blocks, "block"));
        writeln!(
            out,
            "{bytes} in {blocks}, {share:.2}%, are from before tracking began or while it was off; nothing is known of \
             their pointers"
        )?;
    }
    writeln!(out)
}

/// The widths of the columns, by the numbers of the heap.
pub(super) struct Columns {
    heap: u64,
    pub(super) bytes: usize,
    blocks: usize,
    /// The columns of a line; 0 for any number.
    width: usize,
}

impl Columns {
    pub(super) fn new(retention: &Retention<'_>) -> Self {
        let wide = |number: i128, least: usize| commas(number).len().max(least);
        let heap = retention.heap() + retention.untracked().bytes;
        Self {
            heap,
            bytes: wide(heap.into(), "retained".len()),
            blocks: wide(retention.dump.blocks.len() as i128, "blocks".len()),
            width: retention.options.width,
        }
    }

    /// Writes the names of the columns.
    pub(super) fn write_names(&self, blocks: &str, out: &mut dyn Write) -> io::Result<()> {
        let Self { bytes, blocks: wide, .. } = *self;
        writeln!(out, "{:>bytes$}   share {:>bytes$} {blocks:>wide$}", "retained", "own")
    }

    /// Writes a line: what a node retains, its own blocks if it has any, and its name.
    pub(super) fn write(
        &self,
        retained: u64,
        own: Option<Own>,
        name: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Self { bytes, blocks: wide, width, heap } = *self;
        let share = format!("{:.2}%", percent(retained.into(), heap.into()));
        let retained = commas(retained.into());
        let of = |number: Option<u64>| number.map_or_else(String::new, |n| commas(n.into()));
        let (own, blocks) = (of(own.map(|own| own.bytes)), of(own.map(|own| own.blocks)));
        let name = fit(name, width, bytes + 1 + 7 + 1 + bytes + 1 + wide + 2);
        writeln!(out, "{retained:>bytes$} {share:>7} {own:>bytes$} {blocks:>wide$}  {name}")
    }
}

/// The own blocks of a node or group.
#[derive(Clone, Copy)]
pub(super) struct Own {
    pub(super) bytes: u64,
    pub(super) blocks: u64,
}
