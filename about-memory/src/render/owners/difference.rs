//! The difference of two typed trees, as text or JSON.

use std::io::{self, Write};

use memreport_analysis::analysis::{commas, percent, shorten};
use memreport_analysis::ownership::{OwnerChange, OwnerTree, owner_difference};
use serde_json::{Value, json};

use super::json::kind;
use super::text::MIN_NAME;
use super::{Shown, branch, marked, signed};

/// Writes the rows with the largest changes, and the others of each as one line. A row has a line
/// if its change is a large enough share of all changes of roots.
pub(crate) fn write(
    [before, after]: [&OwnerTree; 2],
    shown: &Shown<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let of = if shown.unreported { ", which no reporter reported" } else { "" };
    let change = |before: u64, after: u64| signed(i128::from(after) - i128::from(before));
    writeln!(
        out,
        "{} bytes in {} blocks{of}: {} bytes, now {}\n",
        change(before.bytes, after.bytes),
        change(before.blocks, after.blocks),
        commas(before.bytes.into()),
        commas(after.bytes.into()),
    )?;
    let changes = rows([before, after], shown);
    let whole = changes.iter().map(|row| row.bytes().abs()).sum::<i128>();
    let widest = |of: &dyn Fn(&OwnerChange) -> String, title: &str| {
        let widths = changes.iter().map(|row| of(row).len());
        widths.chain([title.len()]).max().unwrap_or(0)
    };
    let bytes = widest(&|row| signed(row.bytes()), "bytes");
    let now = widest(&|row| commas(row.bytes_after.into()), "now");
    writeln!(out, "{:>bytes$}  {:>now$}  {:>BLOCKS$}", "bytes", "now", "blocks")?;
    Lines { shown, whole, bytes, now, out }.rows(&changes, " ", 0)
}

/// Writes all rows that pass the filter. Bytes are usable bytes.
pub(crate) fn write_json(
    [before, after]: [&OwnerTree; 2],
    shown: &Shown<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let value = json!({
        "bytesBefore": before.bytes,
        "bytesAfter": after.bytes,
        "blocksBefore": before.blocks,
        "blocksAfter": after.blocks,
        "rows": rows([before, after], shown).iter().map(row).collect::<Value>(),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

/// The columns of a number of blocks.
const BLOCKS: usize = 8;

fn rows([before, after]: [&OwnerTree; 2], shown: &Shown<'_>) -> Vec<OwnerChange> {
    owner_difference(&shown.filtered(&before.rows), &shown.filtered(&after.rows))
}

fn row(of: &OwnerChange) -> Value {
    json!({
        "name": of.name,
        "is": kind(of.kind),
        "uncertain": of.is_uncertain,
        "bytesBefore": of.bytes_before,
        "bytesAfter": of.bytes_after,
        "blocksBefore": of.blocks_before,
        "blocksAfter": of.blocks_after,
        "children": of.children.iter().map(row).collect::<Value>(),
    })
}

struct Lines<'s> {
    shown: &'s Shown<'s>,
    /// The sum of all changes of roots, whatever their signs.
    whole: i128,
    bytes: usize,
    now: usize,
    out: &'s mut dyn Write,
}

impl Lines<'_> {
    fn rows(&mut self, rows: &[OwnerChange], before: &str, level: usize) -> io::Result<()> {
        let is_large = |row: &&OwnerChange| {
            row.bytes() != 0 && percent(row.bytes().abs(), self.whole) >= self.shown.min
        };
        let (large, small): (Vec<_>, Vec<_>) = rows.iter().partition(is_large);
        for (at, row) in large.iter().enumerate() {
            let is_last = at + 1 == large.len() && small.is_empty();
            let (here, below) = branch(level, is_last);
            let numbers = [row.bytes(), row.bytes_after.into(), row.blocks()];
            self.line(
                numbers,
                &format!("{before}{here}"),
                &marked(&row.name, row.kind, row.is_uncertain),
            )?;
            if level < self.shown.depth {
                self.rows(&row.children, &format!("{before}{below}"), level + 1)?;
            }
        }
        if small.is_empty() {
            return Ok(());
        }
        let sum = |of: fn(&OwnerChange) -> i128| small.iter().map(|row| of(row)).sum::<i128>();
        let numbers =
            [sum(OwnerChange::bytes), sum(|row| row.bytes_after.into()), sum(OwnerChange::blocks)];
        let here = if level == 0 { "" } else { "└─ " };
        let name = format!("({} with smaller changes)", commas(small.len() as i128));
        self.line(numbers, &format!("{before}{here}"), &name)
    }

    fn line(
        &mut self,
        [bytes, now, blocks]: [i128; 3],
        before: &str,
        name: &str,
    ) -> io::Result<()> {
        let blocks = if blocks == 0 { String::new() } else { signed(blocks) };
        let (wide, known) = (self.bytes, self.now);
        let taken = wide + known + BLOCKS + 4 + before.chars().count();
        let name = shorten(name, self.shown.columns.saturating_sub(taken).max(MIN_NAME));
        let (bytes, now) = (signed(bytes), commas(now));
        writeln!(self.out, "{bytes:>wide$}  {now:>known$}  {blocks:>BLOCKS$}{before}{name}")
    }
}
