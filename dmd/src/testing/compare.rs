//! What a value reported against what it freed: each difference is a line of the text.

use std::collections::{HashMap, HashSet};

use memreport::__private::Wrong;

use super::blame::Blame;
use super::proof::{Claimed, Freed};

/// The two sides, and what explains a difference.
pub(super) struct Comparison<'c> {
    pub(super) type_name: &'c str,
    pub(super) claims: &'c [Claimed],
    pub(super) freed: &'c [Freed],
    /// Blocks that others own as well, so that they may be counted and not freed.
    pub(super) kept: &'c HashSet<usize>,
    pub(super) blame: &'c Blame,
}

impl Comparison<'_> {
    /// A line for each difference.
    pub(super) fn add_differences(&self, lines: &mut Lines) {
        let owned: HashSet<usize> = self.freed.iter().map(|block| block.address).collect();
        let mut by_address: HashMap<usize, Vec<&Claimed>> = HashMap::new();
        for claim in self.claims {
            by_address.entry(claim.address).or_default().push(claim);
        }
        for block in self.freed.iter().filter(|block| !by_address.contains_key(&block.address)) {
            let text = format!("{} is not measured", self.blame.of(block.address));
            lines.add(text, block.usable, "missed");
        }
        let mut claimed: Vec<_> = by_address.into_iter().collect();
        claimed.sort_unstable_by_key(|(address, _)| *address);
        for (address, claims) in claimed {
            self.add_repeated(&claims, lines);
            let is_own = owned.contains(&address) || self.kept.contains(&address);
            self.add_wrong(claims[0], is_own, lines);
        }
    }

    fn place(&self, claim: &Claimed) -> String {
        claim.field.map_or_else(|| self.type_name.to_owned(), |field| format!("{field:?}"))
    }

    fn add_repeated(&self, claims: &[&Claimed], lines: &mut Lines) {
        let [first, second, ..] = claims[..] else { return };
        let text = format!(
            "one block is counted {} times: by {} and by {}",
            claims.len(),
            self.place(first),
            self.place(second)
        );
        lines.add(text, claims[1..].iter().map(|claim| claim.bytes).sum(), "counted too often");
    }

    fn add_wrong(&self, claim: &Claimed, is_own: bool, lines: &mut Lines) {
        let Claimed { bytes, wrong, usable, .. } = *claim;
        let what = match wrong {
            // The proof runs only where all blocks are known.
            Some(Wrong::Untracked) => return,
            None if is_own => return,
            None => "counts a block that the value does not own".to_owned(),
            Some(Wrong::NonHeap) => "counts what is not on the heap".to_owned(),
            Some(Wrong::Interior) => "counts from inside a block, not from its start".to_owned(),
            Some(Wrong::Partial) => format!("counts {bytes} bytes of a block that has {usable}"),
        };
        let text = format!("{} {what}", self.place(claim));
        match wrong {
            Some(Wrong::Partial) => lines.add(text, usable.abs_diff(bytes), "apart"),
            _ => lines.add(text, bytes, "counted"),
        }
    }
}

/// Equal defects, together.
#[derive(Default)]
pub(super) struct Lines {
    lines: Vec<(String, &'static str, usize, usize)>,
    notes: Vec<String>,
}

impl Lines {
    pub(super) fn add(&mut self, text: String, bytes: usize, verb: &'static str) {
        match self.lines.iter_mut().find(|line| line.0 == text && line.1 == verb) {
            Some(line) => {
                line.2 += 1;
                line.3 += bytes;
            }
            None => self.lines.push((text, verb, 1, bytes)),
        }
    }

    /// A defect that is of no block.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.push(format!("  {text}"));
    }

    pub(super) fn into_text(mut self, type_name: &str) -> String {
        if self.lines.is_empty() && self.notes.is_empty() {
            return String::new();
        }
        self.lines.sort_by_key(|line| std::cmp::Reverse(line.3));
        let lines = self.lines.iter().map(|(text, verb, blocks, bytes)| {
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
