//! The account of a heap: how the blocks of a dump add up to the allocated bytes.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::analysis::number::saturated;
use crate::analysis::{Totals, commas};
use crate::read::Sum;

/// The blocks of a dump beside the other memory of its process.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Accounts {
    /// The blocks that the dump lists.
    pub listed: Totals,
    /// The live blocks that it does not list: from before tracking began, or while it was off.
    pub untracked: Sum,
    /// The most bytes of `untracked` that may be in other blocks: those that were freed, and
    /// replaced by new ones, while the dump was taken. The counters do not tell these apart.
    pub replaced: u64,
    /// The bytes of all live blocks by the allocator's counters.
    ///
    /// `None` if the dump does not list all live blocks that it tracks.
    pub heap_allocated: Option<u64>,
    /// True if the figures of blocks are estimates from a sample.
    pub is_estimate: bool,
    /// The bytes of the tracker's own tables, which the other figures leave out.
    pub tracker_bytes: Option<u64>,
}

/// A line of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountLine {
    /// `+` before an addend, `-` before a subtrahend, `=` before the sum of the lines above, else a
    /// space.
    pub sign: char,
    /// The amount.
    pub bytes: i128,
    /// The meaning of the amount.
    pub text: String,
}

/// The memory of a process that is in no row of its heap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outside {
    pub(super) heap_allocated: Option<u64>,
    pub(super) untracked: Sum,
    /// The bytes of blocks that were allocated while the dump was taken.
    pub(super) allocated_during: u64,
    pub(super) tracker: Option<u64>,
    pub(super) is_estimate: bool,
}

impl Outside {
    /// Returns the account of these listed blocks. `is_all` is true if they are all tracked blocks.
    pub(super) fn accounts(self, listed: Totals, is_all: bool) -> Accounts {
        let Outside { heap_allocated, untracked, allocated_during, tracker, is_estimate } = self;
        Accounts {
            listed,
            untracked,
            replaced: if is_estimate { 0 } else { allocated_during.min(untracked.bytes) },
            heap_allocated: heap_allocated.filter(|_| is_all),
            is_estimate,
            tracker_bytes: tracker,
        }
    }
}

impl Accounts {
    /// Returns the lines of the account.
    #[must_use]
    pub fn lines(&self) -> Vec<AccountLine> {
        let line = |sign, bytes, text: &str| AccountLine { sign, bytes, text: text.to_owned() };
        let Totals { req, slop, .. } = self.listed;
        let mut lines = vec![
            line(' ', req, "requested by the program"),
            line('+', slop, "of slop, added by the allocator"),
        ];
        let Sum { blocks, bytes } = self.untracked;
        if self.heap_allocated.is_some() || blocks > 0 {
            let blocks = commas(blocks.into());
            let text = format!("in {blocks} blocks from before tracking began or while it was off");
            lines.push(AccountLine { sign: '+', bytes: bytes.into(), text });
        }
        if self.replaced > 0 {
            let text = "of these, at most, in blocks that were freed while the dump was taken";
            lines.push(line(' ', self.replaced.into(), text));
        }
        let sum = self.listed.usable().saturating_add(bytes.into());
        match self.heap_allocated.map(i128::from) {
            Some(all) => {
                let rest = if self.is_estimate {
                    "by which these estimates are off"
                } else {
                    "that changed while the dump was taken"
                };
                match all.saturating_sub(sum) {
                    0 => {}
                    more @ 1.. => lines.push(line('+', more, rest)),
                    less => lines.push(line('-', less.saturating_neg(), rest)),
                }
                lines.push(line('=', all, "heap-allocated"));
            }
            None => lines.push(line('=', sum, "in these blocks")),
        }
        if let Some(tracker) = self.tracker_bytes {
            let text = "in the tracker's own tables, which none of these has";
            lines.push(line(' ', tracker.into(), text));
        }
        lines
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines().iter().try_for_each(|AccountLine { sign, bytes, text }| {
            writeln!(out, "{sign} {:>15}  {text}", commas(*bytes))
        })
    }

    /// Returns the account as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let Totals { blocks, req, slop } = self.listed;
        json!({
            "requested": saturated(req), "slop": saturated(slop), "blocks": saturated(blocks),
            "untracked": { "blocks": self.untracked.blocks, "bytes": self.untracked.bytes },
            "untrackedOrReplaced": self.replaced,
            "heapAllocated": self.heap_allocated, "trackerBytes": self.tracker_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines below the listed blocks, which have 90 requested bytes and 10 of slop.
    fn lines(untracked: Sum, heap_allocated: Option<u64>, is_estimate: bool) -> Vec<String> {
        let listed = Totals { blocks: 3, req: 90, slop: 10 };
        let accounts = Accounts {
            listed,
            untracked,
            replaced: 0,
            heap_allocated,
            is_estimate,
            tracker_bytes: None,
        };
        let mut out = Vec::new();
        accounts.write_text(&mut out).expect("it is memory");
        let text = String::from_utf8(out).expect("it is text");
        let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines: Vec<String> = text.lines().map(line).collect();
        let below = lines.split_off(2);
        assert_eq!(lines, ["90 requested by the program", "+ 10 of slop, added by the allocator"]);
        below
    }

    #[test]
    fn the_lines_add_up() {
        let none = Sum { blocks: 0, bytes: 0 };
        let some = Sum { blocks: 2000, bytes: 50 };
        let of_none = "+ 0 in 0 blocks from before tracking began or while it was off";
        let of_some = "+ 50 in 2,000 blocks from before tracking began or while it was off";
        let changed = "+ 7 that changed while the dump was taken";
        let off = "- 2 by which these estimates are off";
        let table: [(Sum, Option<u64>, bool, &[&str]); 6] = [
            (none, None, false, &["= 100 in these blocks"]),
            (some, None, false, &[of_some, "= 150 in these blocks"]),
            (none, Some(100), false, &[of_none, "= 100 heap-allocated"]),
            (some, Some(150), false, &[of_some, "= 150 heap-allocated"]),
            (some, Some(157), false, &[of_some, changed, "= 157 heap-allocated"]),
            (some, Some(148), true, &[of_some, off, "= 148 heap-allocated"]),
        ];
        for (untracked, heap_allocated, is_estimate, expected) in table {
            let found = lines(untracked, heap_allocated, is_estimate);
            assert_eq!(found, expected, "{untracked:?} of {heap_allocated:?}");
        }
    }

    #[test]
    fn what_may_have_been_replaced_meanwhile_is_part_of_the_untracked_blocks() {
        let account = |untracked, allocated_during, is_estimate| {
            let untracked = Sum { blocks: 1, bytes: untracked };
            let outside =
                Outside { untracked, allocated_during, is_estimate, ..Outside::default() };
            outside.accounts(Totals::default(), true)
        };
        assert_eq!(account(500, 70, false).replaced, 70);
        assert_eq!(account(500, 7000, false).replaced, 500);
        assert_eq!(account(500, 7000, true).replaced, 0, "an estimate counts no blocks");
        let lines = account(500, 70, false).lines();
        let line = lines.iter().find(|line| line.text.starts_with("of these, at most"));
        assert_eq!(line.map(|line| (line.sign, line.bytes)), Some((' ', 70)));
        assert_eq!(lines.last().map(|line| line.bytes), Some(500), "the sum is as without it");
        assert!(
            account(500, 0, false).lines().iter().all(|line| !line.text.starts_with("of these"))
        );
    }

    #[test]
    fn sums_of_any_size_are_shown() {
        let untracked = Sum { blocks: 1, bytes: u64::MAX };
        let outside = Outside { untracked, heap_allocated: Some(0), ..Outside::default() };
        let listed = Totals { blocks: 1, req: i128::MAX, slop: i128::MAX };
        let rest = outside.accounts(listed, true).lines().into_iter().find(|line| line.sign == '-');
        assert_eq!(rest.map(|line| line.bytes), Some(i128::MAX));
    }

    #[test]
    fn the_trackers_own_bytes_stand_below_the_sum() {
        let outside = Outside { tracker: Some(4096), ..Outside::default() };
        let accounts = outside.accounts(Totals::default(), true);
        let last = accounts.lines().pop().expect("there are lines");
        assert_eq!((last.sign, last.bytes), (' ', 4096));
        assert_eq!(accounts.json()["trackerBytes"], 4096);
    }

    #[test]
    fn the_allocated_bytes_are_compared_with_all_blocks_alone() {
        let outside = Outside { heap_allocated: Some(7), is_estimate: true, ..Outside::default() };
        for (is_all, expected) in [(true, Some(7)), (false, None)] {
            let accounts = outside.accounts(Totals::default(), is_all);
            assert_eq!((accounts.heap_allocated, accounts.is_estimate), (expected, true));
        }
    }
}
