//! Tests that the groups of a census add up, for any heap and any breakdown.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::Value;

use super::examples::{census_of, json_of};
use crate::analysis::Totals;
use crate::census::{
    Amount, Axis, Breakdown, Bucket, Count, Counted, Node, Split, StackCut, StateSplit,
};
use crate::read::{Dump, read_slice};

fn axis() -> impl Strategy<Value = Axis> {
    let depth = || prop::option::of((1_u32..4).prop_map(|depth| depth.try_into().expect("not 0")));
    prop_oneof![
        (depth(), any::<bool>())
            .prop_map(|(depth, invert)| Axis::Stack(StackCut { depth, invert })),
        depth().prop_map(|depth| Axis::Reporter { depth }),
        Just(Axis::Type),
        Just(Axis::File),
        Just(Axis::Field),
        Just(Axis::Thread),
        Just(Axis::Scope),
        Just(Axis::Crate),
        Just(Axis::SizeClass),
        Just(Axis::Size),
        Just(Axis::Site),
        prop::collection::btree_set(0_u64..5000, 1..4)
            .prop_map(|edges| Axis::Age { edges: edges.into_iter().collect() }),
    ]
}

fn breakdown() -> impl Strategy<Value = Breakdown> {
    let count = any::<(bool, bool, bool)>().prop_map(|(count, bytes, slop)| {
        Count::default().count(count).bytes(bytes).slop(slop).into()
    });
    let leaf = prop_oneof![
        3 => Just(Breakdown::default()),
        1 => count,
        1 => (0_u32..5).prop_map(|limit| Bucket::default().limit(limit).into()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            4 => (axis(), inner.clone(), inner.clone())
                .prop_map(|(axis, then, missing)| Split::by(axis).then(then).otherwise(missing).into()),
            1 => prop::array::uniform4(inner.clone()).prop_map(|[a, b, c, d]| {
                StateSplit::default().unreported(a).once(b).twice(c).other(d).into()
            }),
            1 => prop::collection::vec(inner, 0..4).prop_map(Breakdown::Several),
        ]
    })
}

/// Returns heaps of blocks with few different stacks, reports, threads and scopes.
fn heap() -> impl Strategy<Value = String> {
    let block = (0_u32..5000, 0_u32..40, 1_u32..9, any::<u16>(), prop::option::of(1.0..50.0));
    (prop::collection::vec(block, 0..40), any::<bool>()).prop_map(|(blocks, is_live)| {
        let mut list = String::new();
        for (req, slop, num, choice, weight) in blocks {
            let pick = |shift: u32, names: [&'static str; 4]| names[usize::from(choice >> shift) & 3];
            let comma = if list.is_empty() { "" } else { "," };
            let stack = pick(0, ["", r#","alloc":"A""#, r#","alloc":"B""#, r#","alloc":"C""#]);
            let reports = pick(2, ["", r#","reps":["R"]"#, r#","reps":["S"]"#, r#","reps":["R","S"]"#]);
            let thread = pick(4, ["", r#","thread":0"#, r#","thread":1"#, r#","thread":7"#]);
            let scope = pick(6, ["", r#","scope":1"#, r#","scope":2"#, r#","scope":9"#]);
            let age = pick(11, ["", r#","ageMs":0"#, r#","ageMs":700"#, r#","ageMs":9000"#]);
            let freed = if choice >> 8 & 7 == 0 { r#","freed":true"# } else { "" };
            let weight = weight.map_or_else(String::new, |weight: f64| format!(r#","weight":{weight}"#));
            let _ = write!(
                list,
                r#"{comma}{{"req":{req},"slop":{slop},"num":{num}{stack}{reports}{thread}{scope}{age}{freed}{weight}}}"#
            );
        }
        let mode = if is_live { "live" } else { "dark-matter" };
        format!(
            r##"{{"version":5,"invocation":{{"dmdEnvVar":"1","mode":"{mode}"}},"blockList":[{list}],
            "memreport":{{"version":1,"needs":[],"sampled":{{"sampleBytes":64}},"scopes":[[0,"a"],[1,"b"]],
              "threads":[{{"id":1,"name":"main"}}],
              "reports":{{"R":{{"path":"explicit/a/b","type":"T","field":"f"}},"S":{{"path":"explicit/a/c"}}}}}},
            "traceTable":{{"A":["f","g"],"B":["g"],"C":["h","f","g"],"R":["r"],"S":["s"]}},
            "frameTable":{{"f":"#00: one::f (src/one.rs:1)","g":"#00: one::main (src/main.rs:2)",
              "h":"#00: two::h (/home/me/.cargo/registry/src/index/two-1.0.0/src/lib.rs:3)","r":"#00: r","s":"#00: s"}}}}"##
        )
    })
}

/// Adds up the live blocks of a dump, by other code.
fn totals(dump: &Dump) -> Totals {
    let mut totals = Totals::default();
    dump.blocks
        .iter()
        .filter(|block| !block.kind.freed)
        .for_each(|block| totals.add_weighted(&block));
    totals
}

fn assert_adds_up(node: &Node) {
    match &node.counted {
        Counted::Groups(groups) => {
            let mut sum = Amount::default();
            groups.iter().for_each(|group| sum.add(&group.node.amount));
            assert_eq!(sum, node.amount, "{node:?}");
            groups.iter().for_each(|group| assert_adds_up(&group.node));
        }
        Counted::Several(nodes) => {
            assert!(nodes.iter().all(|one| one.node.amount == node.amount), "{node:?}");
            nodes.iter().for_each(|one| assert_adds_up(&one.node));
        }
        Counted::Bucket(bucketed) => {
            let mut sum = bucketed.left_out;
            bucketed.listed.iter().for_each(|blocks| sum.add(&blocks.amount));
            assert_eq!(sum, node.amount, "{node:?}");
        }
        Counted::Count => {}
    }
}

/// Adds up the blocks at all leaves of a census in JSON.
fn leaves(value: &Value) -> i64 {
    match value {
        Value::Object(fields) if fields.get("count").is_some_and(Value::is_number) => {
            fields["count"].as_i64().unwrap_or(0)
        }
        Value::Object(fields) => fields.values().map(leaves).sum(),
        // A list contains pairs of key and value. Numbers are only in objects.
        Value::Array(list) => list.iter().map(leaves).sum(),
        _ => 0,
    }
}

/// Returns whether every block is counted at one leaf, and the leaf has the number of blocks.
fn counts_once(breakdown: &Breakdown) -> bool {
    match breakdown {
        Breakdown::Count(count) => count.count,
        Breakdown::Bucket(_) => true,
        Breakdown::State(split) => split.of.iter().all(counts_once),
        Breakdown::Split(split) => counts_once(&split.then) && counts_once(&split.missing),
        Breakdown::Several(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn groups_add_up_to_their_parent(heap in heap(), breakdown in breakdown()) {
        let census = census_of(&heap, &breakdown);
        let all = totals(&read_slice(heap.as_bytes()).unwrap());
        let root = census.root().amount;
        prop_assert_eq!((i128::from(root.count), i128::from(root.bytes)), (all.blocks, all.usable()));
        prop_assert_eq!(i128::from(root.slop), all.slop);
        assert_adds_up(census.root());
        if counts_once(&breakdown) {
            prop_assert_eq!(leaves(&json_of(&census)), root.count);
        }
    }

    #[test]
    fn differences_add_up_as_well(before in heap(), after in heap(), breakdown in breakdown()) {
        let (before, after) = (census_of(&before, &breakdown), census_of(&after, &breakdown));
        let growth = after.since(&before).unwrap();
        let mut there = before.root().amount;
        there.add(&growth.root().amount);
        prop_assert_eq!(there, after.root().amount);
        assert_adds_up(growth.root());
    }

    #[test]
    fn breakdowns_are_written_as_they_are_read(breakdown in breakdown()) {
        prop_assert_eq!(breakdown.to_json().parse::<Breakdown>().unwrap(), breakdown);
    }
}
