//! Flattens a census to the list of its innermost groups.

use std::collections::BTreeSet;

use memreport_analysis::census::{Amount, Breakdown, Census, Counted, Group, Key, Node};

/// An innermost group.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// The keys of the groups around it, from the outside in.
    pub(crate) keys: Vec<Key>,
    pub(crate) amount: Amount,
}

/// Returns the leaves in the order of the census, without empty ones.
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

/// Returns the names of the keys at each depth; several names if branches differ.
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
