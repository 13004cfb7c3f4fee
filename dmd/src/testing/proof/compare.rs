//! Compares the blocks that a value reported with the blocks that its drop freed.

use std::collections::{HashMap, HashSet};

use memreport::__private::Wrong;

use super::Claimed;
use super::blame::Blame;
use super::differences::Differences;
use super::freed::Freed;

/// The two sides of the comparison, and the context of the messages.
pub(super) struct Comparison<'c> {
    pub(super) type_name: &'c str,
    pub(super) claims: &'c [Claimed],
    pub(super) freed: &'c [Freed],
    /// Blocks that other owners share, which may be counted without being freed.
    pub(super) shared: &'c HashSet<usize>,
    pub(super) blame: &'c Blame,
}

impl Comparison<'_> {
    /// Adds each difference.
    pub(super) fn add_differences(&self, differences: &mut Differences) {
        let owned: HashSet<usize> = self.freed.iter().map(|block| block.address).collect();
        let mut by_address: HashMap<usize, Vec<&Claimed>> = HashMap::new();
        for claim in self.claims {
            by_address.entry(claim.address).or_default().push(claim);
        }
        let missed = self.freed.iter().filter(|block| !by_address.contains_key(&block.address));
        let missed: Vec<Freed> = missed.copied().collect();
        if !missed.is_empty() {
            let places = self.blame.describe(&missed, self.freed);
            for (Freed { block, .. }, place) in missed.iter().zip(places) {
                let text = format!("{place} is not measured");
                differences.add_missed(text, *block);
            }
        }
        let mut claimed: Vec<_> = by_address.into_iter().collect();
        claimed.sort_unstable_by_key(|(address, _)| *address);
        for (address, claims) in claimed {
            self.add_repeated(&claims, differences);
            let is_own = owned.contains(&address) || self.shared.contains(&address);
            self.add_wrong(claims[0], is_own, differences);
        }
    }

    fn place(&self, claim: &Claimed) -> String {
        claim.field.map_or_else(|| self.type_name.to_owned(), |field| format!("{field:?}"))
    }

    fn add_repeated(&self, claims: &[&Claimed], differences: &mut Differences) {
        let [first, second, ..] = claims[..] else { return };
        let text = format!(
            "one block is counted {} times: by {} and by {}",
            claims.len(),
            self.place(first),
            self.place(second)
        );
        differences.add(
            text,
            claims[1..].iter().map(|claim| claim.bytes).sum(),
            "counted too often",
        );
    }

    fn add_wrong(&self, claim: &Claimed, is_own: bool, differences: &mut Differences) {
        let Claimed { bytes, wrong, usable, .. } = *claim;
        let what = match wrong {
            // Cannot happen: the check runs only if every block is tracked.
            Some(Wrong::Untracked) => return,
            None if is_own => return,
            None => "counts a block that the value does not own".to_owned(),
            Some(Wrong::NonHeap) => "counts what is not on the heap".to_owned(),
            Some(Wrong::Interior) => "counts from inside a block, not from its start".to_owned(),
            Some(Wrong::Partial) => format!("counts {bytes} bytes of a block that has {usable}"),
        };
        let text = format!("{} {what}", self.place(claim));
        match wrong {
            Some(Wrong::Partial) => differences.add(text, usable.abs_diff(bytes), "apart"),
            _ => differences.add(text, bytes, "counted"),
        }
    }
}
