//! The differences that a comparison finds, as the text of an error.

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
}

impl Differences {
    /// Adds a block with a difference of so many bytes.
    pub(super) fn add(&mut self, text: String, bytes: usize, verb: &'static str) {
        match self.lines.iter_mut().find(|line| line.text == text && line.verb == verb) {
            Some(line) => {
                line.blocks += 1;
                line.bytes += bytes;
            }
            None => self.lines.push(Line { text, verb, blocks: 1, bytes }),
        }
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
        let lines = self.lines.iter().map(|Line { text, verb, blocks, bytes }| {
            format!(
                "  {text}: {bytes} bytes in {blocks} block{} {verb}",
                if *blocks == 1 { "" } else { "s" }
            )
        });
        let lines: Vec<_> = lines.chain(self.notes.iter().cloned()).collect();
        format!(
            "`{type_name}` does not report exactly the heap that it owns:\n{}",
            lines.join("\n")
        )
    }
}
