//! How the blocks of a dump come to what the allocator has handed out: what was asked for, what is rounded up, what is not known.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::analysis::{Totals, commas};
use crate::read::Sum;

/// The blocks of a dump beside what else the process has.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Accounts {
    /// The blocks that the dump lists.
    pub listed: Totals,
    /// Live blocks that it does not list: from before tracking began, or while it was off.
    pub untracked: Sum,
    /// Bytes of all live blocks by the allocator's counters, if the dump is of live blocks and lists all that it knows of:
    /// those listed and those untracked come to it.
    pub heap_allocated: Option<u64>,
    /// What the tracker's own tables have, which is in none of these.
    pub tracker_bytes: Option<u64>,
}

impl Accounts {
    /// The lines of the account: an amount, and what it is. `=` stands before the sum of those above.
    #[must_use]
    pub fn lines(&self) -> Vec<(char, i128, String)> {
        let Totals { req, slop, .. } = self.listed;
        let mut lines = vec![
            (' ', req, "asked for by the program".to_owned()),
            ('+', slop, "that the allocator rounds up".to_owned()),
        ];
        if let Some(heap_allocated) = self.heap_allocated {
            let Sum { blocks, bytes } = self.untracked;
            let untracked = format!(
                "in {} blocks from before tracking began or while it was off",
                commas(blocks.into())
            );
            lines.push(('+', bytes.into(), untracked));
            lines.push(('=', heap_allocated.into(), "heap-allocated".to_owned()));
        } else {
            lines.push(('=', req + slop, "in these blocks".to_owned()));
        }
        if let Some(tracker) = self.tracker_bytes {
            let words = "in the tracker's own tables, which none of these has";
            lines.push((' ', tracker.into(), words.to_owned()));
        }
        lines
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines().iter().try_for_each(|(sign, bytes, what)| {
            let bytes = commas(*bytes);
            writeln!(out, "{sign} {bytes:>15}  {what}")
        })
    }

    /// As JSON, for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let Totals { blocks, req, slop } = self.listed;
        json!({
            "requested": req, "slop": slop, "blocks": blocks,
            "untracked": { "blocks": self.untracked.blocks, "bytes": self.untracked.bytes },
            "heapAllocated": self.heap_allocated, "trackerBytes": self.tracker_bytes,
        })
    }
}
