//! The difference between two censuses.

use std::collections::HashMap;
use std::{error, fmt};

use super::amount::Amount;
use super::count::sort;
use super::node::{Blocks, Bucketed, Census, Counted, Group, Node};
use crate::axis::Key;

/// The error for two censuses by different breakdowns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DifferentBreakdowns;

impl fmt::Display for DifferentBreakdowns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("censuses by different breakdowns cannot be compared: take both by the same")
    }
}

impl error::Error for DifferentBreakdowns {}

impl Census {
    /// Subtracts an earlier census from this one, and sorts growth first.
    ///
    /// Groups that did not change are left out, except those that exist in every census.
    ///
    /// # Errors
    ///
    /// Returns an error if the two are by different breakdowns.
    pub fn since(&self, before: &Census) -> Result<Census, DifferentBreakdowns> {
        if self.breakdown != before.breakdown {
            return Err(DifferentBreakdowns);
        }
        let mut notes = before.notes.clone();
        notes.extend(self.notes.iter().filter(|note| !before.notes.contains(note)).cloned());
        Ok(Census {
            breakdown: self.breakdown.clone(),
            root: difference(Some(&before.root), Some(&self.root))
                .unwrap_or_else(|| before.root.clone()),
            is_sampled: self.is_sampled || before.is_sampled,
            is_difference: true,
            notes,
        })
    }
}

/// Subtracts one node from another. A missing node is one of no blocks; `None` if both are missing.
fn difference(before: Option<&Node>, after: Option<&Node>) -> Option<Node> {
    let mut amount = Amount::default();
    amount.add(&after.map(|node| node.amount).unwrap_or_default());
    amount.subtract(&before.map(|node| node.amount).unwrap_or_default());
    let counted = match (&before.or(after)?.counted, &after.or(before)?.counted) {
        (Counted::Groups(_), Counted::Groups(_)) => Counted::Groups(groups(before, after)),
        (Counted::Several(several), Counted::Several(_)) => {
            let at = |node: Option<&'_ Node>, at: usize| match node.map(|node| &node.counted) {
                Some(Counted::Several(groups)) => groups.get(at).map(|group| group.node.clone()),
                _ => None,
            };
            let one = |(number, group): (usize, &Group)| {
                let node = difference(at(before, number).as_ref(), at(after, number).as_ref())?;
                Some(Group { key: group.key.clone(), node })
            };
            Counted::Several(several.iter().enumerate().filter_map(one).collect())
        }
        (Counted::Bucket(_), Counted::Bucket(_)) => Counted::Bucket(bucket(before, after, amount)),
        _ => Counted::Count,
    };
    Some(Node { amount, counted })
}

fn inner(node: Option<&Node>) -> &[Group] {
    match node.map(|node| &node.counted) {
        Some(Counted::Groups(groups)) => groups,
        _ => &[],
    }
}

/// A group before and after.
struct Pair<'c> {
    key: &'c Key,
    before: Option<&'c Node>,
    after: Option<&'c Node>,
}

fn groups(before: Option<&Node>, after: Option<&Node>) -> Vec<Group> {
    let mut old: HashMap<&Key, &Node> =
        inner(before).iter().map(|group| (&group.key, &group.node)).collect();
    let mut all: Vec<Pair<'_>> = inner(after)
        .iter()
        .map(|group| Pair {
            key: &group.key,
            before: old.remove(&group.key),
            after: Some(&group.node),
        })
        .collect();
    let gone = inner(before).iter().filter(|group| old.contains_key(&group.key));
    all.extend(gone.map(|group| Pair { key: &group.key, before: Some(&group.node), after: None }));
    let mut fixed = Vec::new();
    let mut groups = Vec::new();
    for Pair { key, before, after } in all {
        let Some(node) = difference(before, after) else { continue };
        let group = Group { key: key.clone(), node };
        match key {
            Key::Fixed(_) => fixed.push(group),
            _ if has_changed(&group.node) => groups.push(group),
            _ => {}
        }
    }
    sort(&mut groups);
    groups.append(&mut fixed);
    groups
}

/// Returns whether any amount in it is not 0, even if their sum is.
fn has_changed(node: &Node) -> bool {
    node.amount != Amount::default()
        || match &node.counted {
            Counted::Groups(groups) | Counted::Several(groups) => {
                groups.iter().any(|group| has_changed(&group.node))
            }
            Counted::Bucket(bucketed) => !bucketed.listed.is_empty(),
            Counted::Count => false,
        }
}

/// Returns the lines that are in only one of two lists.
///
/// Blocks that either list leaves out cannot be compared line by line.
fn bucket(before: Option<&Node>, after: Option<&Node>, all: Amount) -> Bucketed {
    let listed = |node: Option<&Node>| match node.map(|node| &node.counted) {
        Some(Counted::Bucket(bucketed)) => bucketed.listed.clone(),
        _ => Vec::new(),
    };
    let (mut old, new) = (listed(before), listed(after));
    let mut lines: Vec<Blocks> = Vec::new();
    for line in new {
        match old.iter().position(|other| *other == line) {
            Some(at) => {
                old.swap_remove(at);
            }
            None => lines.push(line),
        }
    }
    for line in old {
        let mut amount = Amount::default();
        amount.subtract(&line.amount);
        lines.push(Blocks { amount, ..line });
    }
    lines.sort_by_key(|line| {
        (
            std::cmp::Reverse((line.amount.bytes, line.amount.count)),
            line.address,
            line.size,
            line.slop,
        )
    });
    let mut left_out = all;
    lines.iter().for_each(|line| left_out.subtract(&line.amount));
    Bucketed { listed: lines, left_out }
}
