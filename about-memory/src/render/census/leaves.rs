//! A census as a list: the groups that are not told apart further, and the questions that led to them.

use std::collections::BTreeSet;

use memreport_analysis::census::{Amount, Breakdown, Census, Counted, Group, Key, Node};

/// Blocks that are not told apart further.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// The answers that led there.
    pub(crate) keys: Vec<Key>,
    pub(crate) amount: Amount,
}

/// The leaves in the order of the census, without those of no block.
pub(crate) fn leaves(census: &Census) -> Vec<Leaf> {
    let mut found = Vec::new();
    gather(census.root(), &mut Vec::new(), &mut found);
    found.retain(|leaf| leaf.amount != Amount::default());
    found
}

fn gather(node: &Node, keys: &mut Vec<Key>, found: &mut Vec<Leaf>) {
    let mut leaf = |last: Key, amount| {
        let keys = keys.iter().cloned().chain([last]).collect();
        found.push(Leaf { keys, amount });
    };
    match &node.counted {
        Counted::Groups(groups) | Counted::Several(groups) => {
            for Group { key, node, .. } in groups {
                keys.push(key.clone());
                gather(node, keys, found);
                keys.pop();
            }
        }
        Counted::Bucket(bucketed) => {
            for blocks in &bucketed.listed {
                leaf(Key::Text(blocks.describe().into()), blocks.amount);
            }
            leaf(Key::Fixed("(left out)"), bucketed.left_out);
        }
        _ => found.push(Leaf { keys: keys.clone(), amount: node.amount }),
    }
}

/// What the answers are answers to, at each depth; several names where ways differ.
pub(crate) fn questions(census: &Census) -> Vec<String> {
    let mut names = Vec::new();
    let mut level = vec![census.breakdown()];
    loop {
        let asked = level.iter().filter(|breakdown| !matches!(breakdown, Breakdown::Count(_)));
        let name = |breakdown: &&Breakdown| match breakdown {
            Breakdown::Several(_) => "by".to_owned(),
            Breakdown::Bucket(_) => "blocks".to_owned(),
            other => other.name().to_owned(),
        };
        let asked: BTreeSet<String> = asked.map(name).collect();
        if asked.is_empty() {
            return names;
        }
        names.push(asked.into_iter().collect::<Vec<_>>().join("/"));
        level = level.iter().flat_map(|breakdown| breakdown.inner()).collect();
    }
}
