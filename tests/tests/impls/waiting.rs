//! Tests the prefetch queue: in any order of measuring, everything is counted once and for the
//! right part.
#![expect(
    clippy::vec_box,
    clippy::arc_with_non_send_sync,
    reason = "owners of all kinds are measured"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, LinkedList};
use std::rc::Rc;
use std::sync::Arc;

use dmd::assert_fully_reported;
use dmd::testing::Budget;
use memreport::{MallocSizeOf, measure};

use super::text;

/// A node with pointers of all kinds, alone and in containers.
#[derive(Default, MallocSizeOf)]
struct Node {
    name: String,
    left: Option<Box<Node>>,
    right: Option<Arc<Node>>,
    more: Vec<Box<Node>>,
    locked: Option<Rc<RefCell<Node>>>,
}

/// Returns a tree of this many nodes, in a shape given by `seed`.
fn tree(nodes: usize, mut seed: u64) -> Node {
    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let mut node = Node { name: text(nodes % 30), ..Node::default() };
    let mut rest = nodes.saturating_sub(1);
    let mut turn = seed >> 33;
    while rest > 0 {
        // Half of them, or a few: trees are both deep and wide.
        let share = if turn & 8 == 0 { rest.div_ceil(2) } else { rest.min(3) };
        let child = tree(share, seed ^ turn);
        match turn & 3 {
            0 if node.left.is_none() => node.left = Some(Box::new(child)),
            1 if node.right.is_none() => node.right = Some(Arc::new(child)),
            2 if node.locked.is_none() => node.locked = Some(Rc::new(RefCell::new(child))),
            _ => node.more.push(Box::new(child)),
        }
        rest -= share;
        turn = turn.wrapping_mul(25_214_903_917).wrapping_add(11) >> 1;
    }
    node
}

#[test]
fn trees_of_any_shape() {
    for seed in 0..20 {
        assert_fully_reported!(tree(1000, seed));
    }
    assert_fully_reported!(tree(20_000, 20));
}

#[test]
fn more_than_the_queue_holds() {
    // A list is followed without look-ahead: all that it leads to is queued.
    assert_fully_reported!((0..1000).map(|n| Box::new(text(n % 50))).collect::<LinkedList<_>>());
    assert_fully_reported!((0..1000).map(|n| tree(n % 7, 1)).collect::<LinkedList<_>>());
    // These look ahead, and the values behind are queued.
    assert_fully_reported!((0..1000).map(|n| tree(n % 7, 2)).collect::<Vec<_>>());
    assert_fully_reported!((0..1000).map(|n| (n, tree(n % 7, 3))).collect::<BTreeMap<_, _>>());
}

#[test]
fn each_part_is_given_its_own() {
    #[derive(MallocSizeOf)]
    struct Parts {
        before: Vec<Box<Node>>,
        #[malloc_size_of(part)]
        first: Option<Box<Node>>,
        #[malloc_size_of(part)]
        second: LinkedList<Box<Node>>,
        behind: Box<Node>,
    }

    let nodes = |count: usize| (0..count).map(|n| Box::new(tree(n, n as u64)));
    let parts = Parts {
        before: nodes(60).collect(),
        first: Some(Box::new(tree(500, 3))),
        second: nodes(400).collect(),
        behind: Box::new(tree(100, 4)),
    };
    let measured = measure(&parts);
    assert_eq!(measured.part("first"), measure(&parts.first).bytes);
    assert_eq!(measured.part("second"), measure(&parts.second).bytes);
    let others = measure(&parts.before).bytes + measure(&parts.behind).bytes;
    assert_eq!(measured.bytes, measured.part("first") + measured.part("second") + others);
}

#[test]
fn measuring_takes_no_memory_but_for_a_short_list() {
    let texts: HashMap<u32, Vec<String>> = (0..1000).map(|n| (n, vec![text(9); 5])).collect();
    let numbers: BTreeMap<u32, Box<u32>> = (0..1000).map(|n| (n, Box::new(n))).collect();
    Budget::new().max_blocks(0).assert(|_| measure(&(texts, numbers)));
    // Shared values are remembered, and left out here.
    let tree: Vec<Owned> = (0..100).map(|n| owned(n % 12)).collect();
    Budget::new().max_peak(20_000).no_leak().assert(|_| measure(&tree));
    let list: LinkedList<Box<Owned>> = (0..1000).map(|_| Box::new(owned(1))).collect();
    Budget::new().max_peak(20_000).no_leak().assert(|_| measure(&list));
}

/// A tree without shared values.
#[derive(MallocSizeOf)]
struct Owned(Vec<Box<Owned>>, Option<Box<Owned>>);

fn owned(depth: usize) -> Owned {
    match depth {
        0 => Owned(Vec::new(), None),
        _ => Owned(
            vec![Box::new(owned(depth - 1)), Box::new(owned(depth / 2))],
            Some(Box::new(owned(depth / 3))),
        ),
    }
}
