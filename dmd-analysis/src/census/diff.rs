//! What one census has beyond another.

use std::collections::HashMap;
use std::{error, fmt};

use super::count::sort;
use super::item::Amount;
use super::node::{Blocks, Bucketed, Census, Counted, Group, Key, Node};

/// Two censuses that do not answer the same question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DifferentBreakdowns;

impl fmt::Display for DifferentBreakdowns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("censuses by different breakdowns cannot be compared: take both by the same")
    }
}

impl error::Error for DifferentBreakdowns {}

impl Census {
    /// What this census has beyond an earlier one: growth first. Groups that did not change are left out, but for those that are
    /// always there.
    ///
    /// # Errors
    ///
    /// If the two are by different breakdowns.
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

/// One of the two at least is there.
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

fn groups(before: Option<&Node>, after: Option<&Node>) -> Vec<Group> {
    let mut old: HashMap<&Key, &Node> =
        inner(before).iter().map(|group| (&group.key, &group.node)).collect();
    let mut all: Vec<(&Key, Option<&Node>, Option<&Node>)> = inner(after)
        .iter()
        .map(|group| (&group.key, old.remove(&group.key), Some(&group.node)))
        .collect();
    let gone = inner(before).iter().filter(|group| old.contains_key(&group.key));
    all.extend(gone.map(|group| (&group.key, Some(&group.node), None)));
    let mut fixed = Vec::new();
    let mut groups = Vec::new();
    for (key, before, after) in all {
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

/// Whether anything in it has, even if all of it together has not.
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

/// The lines that are only in one of two lists. What was left out of either cannot be compared line by line.
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
