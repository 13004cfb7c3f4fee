//! The differences that a comparison finds, as the text of an error.

use crate::table::packed_block::Block;
use crate::testing::own_lines;

/// Differences, with equal ones added up.
#[derive(Default)]
pub(super) struct Differences {
    lines: Vec<Line>,
    notes: Vec<String>,
}

/// A line of the text.
struct Line {
    text: String,
    verb: &'static str,
    blocks: usize,
    bytes: usize,
    /// The largest block, if the text is to name its allocation.
    largest: Option<Block>,
}

impl Differences {
    /// Adds a block with a difference of so many bytes.
    pub(super) fn add(&mut self, text: String, bytes: usize, verb: &'static str) {
        self.add_line(Line { text, verb, blocks: 1, bytes, largest: None });
    }

    /// Adds a missed block. The text names the allocation of the largest one.
    pub(super) fn add_missed(&mut self, text: String, block: Block) {
        let (bytes, verb) = (block.usable, "missed");
        self.add_line(Line { text, verb, blocks: 1, bytes, largest: Some(block) });
    }

    fn add_line(&mut self, new: Line) {
        let is_same = |line: &&mut Line| line.text == new.text && line.verb == new.verb;
        let Some(line) = self.lines.iter_mut().find(is_same) else {
            self.lines.push(new);
            return;
        };
        line.blocks += new.blocks;
        line.bytes += new.bytes;
        line.largest = [line.largest, new.largest].into_iter().flatten().max_by_key(|b| b.usable);
    }

    /// Adds a difference that concerns no single block.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.push(format!("  {text}"));
    }

    /// Returns the text, with the most bytes first; empty if there is no difference.
    pub(super) fn into_text(mut self, type_name: &str) -> String {
        if self.lines.is_empty() && self.notes.is_empty() {
            return String::new();
        }
        self.lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
        let lines = self.lines.iter().map(|Line { text, verb, blocks, bytes, largest }| {
            let plural = if *blocks == 1 { "" } else { "s" };
            // The line that allocated it says which value it is, also where no field is known.
            let allocated = largest.and_then(|block| own_lines::of(block.site).into_iter().next());
            let allocated =
                allocated.map_or_else(String::new, |line| format!("\n     allocated by {line}"));
            format!("  {text}: {bytes} bytes in {blocks} block{plural} {verb}{allocated}")
        });
        let lines: Vec<_> = lines.chain(self.notes.iter().cloned()).collect();
        format!(
            "`{type_name}` does not report exactly the heap that it owns:\n{}",
            lines.join("\n")
        )
    }
}
