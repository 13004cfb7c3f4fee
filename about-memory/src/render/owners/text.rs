//! The typed tree as text: a line for each row, with its bytes, share and blocks.

use std::io::{self, Write};

use memreport_analysis::analysis::{commas, counted, percent, shorten};
use memreport_analysis::ownership::{OwnerRow, OwnerTree, RowKind};

use super::{Shown, branch, marked};

/// The smallest width of a name.
pub(super) const MIN_NAME: usize = 24;

/// Writes the rows that are large enough, and the others of each as one line.
pub(crate) fn write(tree: &OwnerTree, shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    head(tree, shown, out)?;
    let rows = shown.filtered(&tree.rows);
    let bytes = number(tree.bytes).len().max("bytes".len());
    let blocks = number(tree.blocks).len().max("blocks".len());
    writeln!(out, "{:>bytes$}    share {:>blocks$}", "bytes", "blocks")?;
    Lines { shown, heap: tree.bytes, bytes, blocks, out }
        .rows(&rows, Place { before: " ", level: 0, whole: tree.bytes })
}

fn head(tree: &OwnerTree, shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let share = |part: u64| percent(part.into(), tree.bytes.into());
    let of = if shown.unreported { ", which no reporter reported" } else { "" };
    let blocks = counted(tree.blocks.into(), "block");
    writeln!(out, "{} bytes in {blocks}{of}", number(tree.bytes))?;
    writeln!(
        out,
        "{:.1} % are below a named root, {:.1} % through typed fields all the way; {:.1} % have a \
         type; several roots hold {:.1} %",
        share(tree.named),
        share(tree.certain),
        share(tree.typed),
        share(tree.several)
    )?;
    if !tree.has_types {
        writeln!(
            out,
            "the program's file has no types: build it with debug = true in its profile to see fields"
        )?;
    }
    if tree.untracked.blocks > 0 {
        let (bytes, blocks) = (number(tree.untracked.bytes), number(tree.untracked.blocks));
        writeln!(out, "not in the tree: {bytes} bytes in {blocks} blocks from before tracking")?;
    }
    writeln!(out)
}

fn number(number: u64) -> String {
    commas(number.into())
}

struct Lines<'s> {
    shown: &'s Shown<'s>,
    heap: u64,
    bytes: usize,
    blocks: usize,
    out: &'s mut dyn Write,
}

/// The place of rows in the tree.
#[derive(Clone, Copy)]
struct Place<'b> {
    /// The text before their names.
    before: &'b str,
    level: usize,
    /// The bytes of which a row needs a share to have a line.
    whole: u64,
}

impl Lines<'_> {
    fn rows(&mut self, rows: &[OwnerRow], place: Place<'_>) -> io::Result<()> {
        let Place { before, level, whole } = place;
        let share = |row: &OwnerRow| percent(row.bytes.into(), whole.into());
        // A leak has a line however small it is.
        let is_shown = |row: &&OwnerRow| {
            row.bytes > 0 && (share(row) >= self.shown.min || is_leak(row, level))
        };
        let (large, small): (Vec<_>, Vec<_>) = rows.iter().partition(is_shown);
        for (at, row) in large.iter().enumerate() {
            let is_last = at + 1 == large.len() && small.is_empty();
            let (here, below) = branch(level, is_last);
            self.line(row.bytes, row.blocks, &format!("{before}{here}"), &name(row))?;
            if level < self.shown.depth {
                let before = format!("{before}{below}");
                // Within a leak, shares are of the leak.
                let whole = if is_leak(row, level) { row.bytes } else { whole };
                self.rows(&row.children, Place { before: &before, level: level + 1, whole })?;
            }
        }
        if small.is_empty() {
            return Ok(());
        }
        let sum = |of: &dyn Fn(&OwnerRow) -> u64| {
            small.iter().copied().map(of).fold(0, u64::saturating_add)
        };
        let here = if level == 0 { "" } else { "└─ " };
        let name = format!("({} smaller)", commas(small.len() as i128));
        let (bytes, blocks) = (sum(&|row| row.bytes), sum(&|row| row.blocks));
        self.line(bytes, blocks, &format!("{before}{here}"), &name)
    }

    fn line(&mut self, bytes: u64, blocks: u64, before: &str, name: &str) -> io::Result<()> {
        let share = percent(bytes.into(), self.heap.into());
        let blocks = if blocks == 0 { String::new() } else { number(blocks) };
        let (wide, count) = (self.bytes, self.blocks);
        let taken = wide + 10 + count + before.chars().count();
        let room = self.shown.columns.saturating_sub(taken).max(MIN_NAME);
        let name = shorten(name, room);
        writeln!(self.out, "{:>wide$} {share:>7.2}% {blocks:>count$}{before}{name}", number(bytes))
    }
}

/// Returns whether a row of this level has all blocks that nothing refers to.
fn is_leak(row: &OwnerRow, level: usize) -> bool {
    level == 0 && row.kind == RowKind::Leaked
}

/// Returns the name of a row with its figures.
fn name(row: &OwnerRow) -> String {
    let name = marked(&row.name, row.kind, row.is_uncertain);
    let mut figures = Vec::new();
    if row.blocks > 1 {
        figures.push(format!("mean {}", number(row.own / row.blocks)));
    }
    if row.spare > 0 {
        let load = percent(row.used.into(), row.places.into());
        figures.push(format!("{load:.0} % full, {} spare", number(row.spare)));
    }
    let copies = percent(row.copies.into(), row.own.into());
    // What rounds to 0 % is left out.
    if copies >= 0.5 {
        // Contents that could not be compared may be copies too.
        let least = if row.compared < row.own { "at least " } else { "" };
        figures.push(format!("{least}{copies:.0} % copies"));
    }
    if figures.is_empty() { name } else { format!("{name}  ({})", figures.join("; ")) }
}

#[cfg(test)]
mod tests {
    use memreport_analysis::ownership::OwnerTreeOptions;
    use memreport_analysis::read::read_slice;
    use memreport_analysis::symbols::Types;

    use super::*;

    #[test]
    fn a_name_takes_the_columns_beside_the_figures() {
        let name = "shop::".repeat(8) + "CARTS";
        let dump = format!(
            r#"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"scan"}},
            "blockList":[{{"req":700,"addr":"1000"}}],
            "memreport":{{"version":1,"statics":[{{"module":"/p","offset":"8","name":"{name}","to":"1000"}}]}},
            "traceTable":{{}},"frameTable":{{}}}}"#
        );
        let dump = read_slice(dump.as_bytes()).unwrap();
        let tree = OwnerTree::new(&dump, &Types::default(), &OwnerTreeOptions::default()).unwrap();
        let line = |columns| {
            let shown = Shown { depth: 0, min: 0.0, filter: "", columns, unreported: false };
            let mut out = Vec::new();
            write(&tree, &shown, &mut out).unwrap();
            String::from_utf8(out).unwrap().lines().last().unwrap().to_owned()
        };
        let whole = line(1000);
        let columns = whole.chars().count();
        assert!(whole.ends_with(&format!(" static {name}")), "{whole}");
        assert_eq!(line(columns), whole);
        let cut = line(columns - 1);
        assert!(cut.contains('…') && cut.chars().count() == columns - 1, "{cut}");
    }
}
