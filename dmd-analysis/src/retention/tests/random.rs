//! Random dumps: sums add up, and the retained size of groups equals the bytes lost without them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::super::{PathOptions, RetainedNode, Retention, Target, TreeOptions};
use super::oracle::edges;
use crate::analysis::ExplainOptions;
use crate::axis::Axis;
use crate::read::{Dump, read_slice};

/// Returns a dump of blocks from two sites that point at each other, some of which statics hold.
pub(crate) fn dump(nodes: usize, edges: &BTreeSet<(u32, u32)>, known: &BTreeSet<u32>) -> Dump {
    let mut blocks = String::new();
    for node in 0..u32::try_from(nodes).unwrap() {
        let comma = if node == 0 { "" } else { "," };
        let to = edges.iter().filter(|edge| edge.0 == node);
        let words: Vec<String> = to.map(|(_, to)| format!("\"{:x}\"", (to + 1) * 0x1000)).collect();
        let site = if node % 2 == 0 { "A" } else { "B" };
        let address = (node + 1) * 0x1000;
        let _ = write!(
            blocks,
            r#"{comma}{{"req":{},"addr":"{address:x}","alloc":"{site}","contents":[{}]}}"#,
            256 + node,
            words.join(",")
        );
    }
    let statics: Vec<String> = known
        .iter()
        .map(|node| {
            let (name, to) = (["ONE", "TWO"][*node as usize % 2], (node + 1) * 0x1000);
            format!(r#"{{"module":"/p","offset":"10","name":"p::{name}","to":"{to:x}"}}"#)
        })
        .collect();
    let text = format!(
        r##"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"scan"}},"blockList":[{blocks}],
        "memreport":{{"version":1,"statics":[{}]}},"traceTable":{{"A":["a"],"B":["b"]}},
        "frameTable":{{"a":"#00: a (a.rs:1)","b":"#00: b (b.rs:2)"}}}}"##,
        statics.join(",")
    );
    read_slice(text.as_bytes()).unwrap()
}

fn check_sums(node: &RetainedNode) -> Result<(), TestCaseError> {
    let children: u64 = node.children.iter().map(|child| child.bytes).sum();
    if !node.children.is_empty() {
        prop_assert_eq!(node.bytes, node.own + children, "{:?}", node.name);
    }
    node.children.iter().try_for_each(check_sums)
}

/// Returns the bytes that become unreachable without these blocks. External roots stay.
fn lost(retention: &Retention<'_>, sizes: &[u64], gone: impl Fn(u32) -> bool) -> u64 {
    let mut reached = BTreeSet::new();
    let mut pending = vec![retention.root()];
    while let Some(node) = pending.pop() {
        if !gone(node) && reached.insert(node) {
            pending.extend(retention.edges().targets(node));
        }
    }
    let kept = (0..).zip(sizes).filter(|(node, _)| reached.contains(node));
    sizes.iter().sum::<u64>() - kept.map(|(_, size)| size).sum::<u64>()
}

proptest! {
    #[test]
    fn every_byte_of_a_dump_is_retained_once(
        (nodes, edges) in edges(),
        known in prop::collection::btree_set(0_u32..10, 0..3),
        top in 0_usize..4,
        depth in 0_usize..4,
    ) {
        let dump = dump(nodes, &edges, &known);
        let sizes: Vec<u64> = dump.blocks.iter().map(|block| block.usable()).collect();
        let options = ExplainOptions::default();
        let retention = Retention::new(&dump, &options).unwrap();
        prop_assert_eq!(retention.heap(), sizes.iter().sum::<u64>());
        let tree = retention.tree(&TreeOptions { top, depth, min_percent: 0.0 });
        prop_assert_eq!(tree.bytes, retention.heap());
        check_sums(&tree)?;
        for node in 0..nodes {
            let number = u32::try_from(node).unwrap();
            prop_assert_eq!(retention.retained_by_block(node), lost(&retention, &sizes, |other| other == number));
            let address = u64::from(number + 1) * 0x1000 + 5;
            let why = retention.why_alive(&Target::Block(address), &PathOptions::default()).unwrap();
            prop_assert_eq!((why.blocks, why.block), (1, Some(node)));
            prop_assert!(!why.paths.is_empty(), "every block is held by something");
            for path in &why.paths {
                prop_assert_eq!(path.steps.last().unwrap().block(), Some(node));
            }
        }
        let (groups, count) = retention.groups(&Axis::Site, 5);
        prop_assert_eq!(count, groups.len());
        for group in groups {
            let parity = u32::from(group.name.starts_with('b'));
            let is_of = |node: u32| (node as usize) < nodes && node % 2 == parity;
            prop_assert_eq!(group.retained, lost(&retention, &sizes, is_of), "{}", group.name);
        }
        let why = retention.why_alive(&Target::Site("a (".to_owned()), &PathOptions::default()).unwrap();
        let by_paths: u64 = why.paths.iter().map(|path| path.blocks).sum();
        // To one block there may be several.
        prop_assert!(why.blocks == 1 || by_paths + why.blocks_by_other_paths == why.blocks as u64);
    }
}
