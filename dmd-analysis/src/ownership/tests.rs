//! Tests of whole trees: small dumps with what they become, and random ones that add up.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::{OwnerRow, OwnerTree, OwnerTreeOptions};
use crate::read::{Dump, read_slice};
use crate::retention::tests::random;
use crate::symbols::Types;

mod typed;

fn tree(dump: &Dump) -> OwnerTree {
    OwnerTree::new(dump, &Types::default(), &OwnerTreeOptions::default()).expect("it is a scan")
}

fn scan(blocks: &str, ours: &str) -> Dump {
    let text = format!(
        r##"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"scan"}},"blockList":[{blocks}],
        "memreport":{{"version":1,{ours}}},"traceTable":{{}},"frameTable":{{}}}}"##
    );
    read_slice(text.as_bytes()).expect("it is a dump")
}

/// Returns the rows as text: a line for each, with its bytes and blocks.
fn text(rows: &[OwnerRow], depth: usize, out: &mut String) {
    for row in rows {
        let mark = if row.is_uncertain { "? " } else { "" };
        let (OwnerRow { name, bytes, blocks, .. }, indent) = (row, depth * 2);
        let _ = writeln!(out, "{:indent$}{mark}{name} {bytes} {blocks}", "");
        text(&row.children, depth + 1, out);
    }
}

fn shown(dump: &Dump) -> String {
    let mut out = String::new();
    text(&tree(dump).rows, 0, &mut out);
    out
}

#[test]
fn a_block_that_two_statics_hold_belongs_to_none_alone() {
    let blocks = r#"{"req":64,"addr":"1000","contents":["3000"]},{"req":32,"addr":"2000",
        "contents":["3000"]},{"req":16,"addr":"3000"},{"req":8,"addr":"4000"}"#;
    let words = r#""statics":[{"module":"/p","offset":"8","name":"p::A","to":"1000"},
        {"module":"/p","offset":"10","name":"p::B","to":"2000"}]"#;
    let expected = "\
p::A 64 0
  ? type unknown 64 1
p::B 32 0
  ? type unknown 32 1
held by several, and by none alone 16 0
  static p::A and static p::B 16 0
    type unknown 16 1
held from a stack or a library, or leaked 8 0
  type unknown 8 1
";
    assert_eq!(shown(&scan(blocks, words)), expected);
}

#[test]
fn what_several_hold_has_the_names_of_the_first_of_them() {
    // 5000 is held by all five through 4000, which four of them share, and by the fifth itself.
    let blocks = r#"{"req":16,"addr":"1000","contents":["4000"]},
        {"req":16,"addr":"2000","contents":["4000"]},{"req":8,"addr":"3000","contents":["4000"]},
        {"req":32,"addr":"4000","contents":["5000"]},{"req":64,"addr":"5000"},
        {"req":8,"addr":"6000","contents":["5000"]}"#;
    let words = r#""statics":[{"module":"/p","offset":"8","name":"p::A","to":"1000"},
        {"module":"/p","offset":"10","name":"p::B","to":"2000"},
        {"module":"/p","offset":"18","name":"p::C","to":"3000"},
        {"module":"/p","offset":"20","name":"p::D","to":"6000"}]"#;
    let tree = shown(&scan(blocks, words));
    let expected = "held by several, and by none alone 96 0
  static p::A, static p::B, static p::C and others 64 0
    type unknown 64 1
  static p::A, static p::B and static p::C 32 0
    type unknown 32 1
";
    assert!(tree.starts_with(expected), "{tree}");
}

#[test]
fn a_static_and_a_block_hold_what_words_of_a_stack_lead_to() {
    let blocks = r#"{"req":64,"addr":"1000","contents":["3000"]},{"req":32,"addr":"2000",
        "contents":[]},{"req":16,"addr":"3000"},{"req":8,"addr":"4000","contents":["5000"]},
        {"req":4,"addr":"5000"}"#;
    let words = r#""statics":[
        {"module":"(process)","offset":"8","name":"stack of thread 7","to":"1000"},
        {"module":"(process)","offset":"10","name":"stack of thread 7","to":"2000"},
        {"module":"(process)","offset":"18","name":"stack of thread 7","to":"3000"},
        {"module":"(process)","offset":"20","name":"stack of thread 7","to":"4000"},
        {"module":"(process)","offset":"28","name":"stack of thread 7","to":"5000"},
        {"module":"/p","offset":"8","name":"p::A","to":"1000"}]"#;
    let expected = "\
p::A 80 0
  ? type unknown 80 2
stack of thread 7 44 0
  ? type unknown 44 3
";
    assert_eq!(shown(&scan(blocks, words)), expected);
}

#[test]
fn a_static_holds_what_words_of_a_buffer_below_a_stack_lead_to() {
    let blocks = r#"{"req":64,"addr":"1000","contents":["3000"]},{"req":32,"addr":"2000",
        "contents":["3000","4000"]},{"req":16,"addr":"3000"},{"req":8,"addr":"4000"}"#;
    let words = r#""statics":[
        {"module":"(process)","offset":"8","name":"stack of thread 7","to":"2000"},
        {"module":"/p","offset":"8","name":"p::A","to":"1000"}]"#;
    let expected = "\
p::A 80 0
  ? type unknown 80 2
stack of thread 7 40 0
  ? type unknown 40 2
";
    assert_eq!(shown(&scan(blocks, words)), expected);
}

#[test]
fn words_of_bytes_hold_what_no_other_block_does() {
    let dump = read_slice(
        br##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},"blockList":[
        {"req":64,"addr":"1000","contents":["3000"]},
        {"req":32,"addr":"2000","contents":["3000","4000"],"alloc":"T"},
        {"req":16,"addr":"3000"},{"req":8,"addr":"4000"}],
        "memreport":{"version":1,"statics":[
        {"module":"/p","offset":"8","name":"p::A","to":"1000"},
        {"module":"/p","offset":"10","name":"p::BYTES","to":"2000"}],"symbols":{
        "v":{"function":"f","name":"with_capacity<u8>",
        "file":"/rustc/1/library/alloc/src/vec/mod.rs","line":1,"inlined":true},
        "m":{"function":"p::main","file":"src/main.rs","line":7,"inlined":false}}},
        "traceTable":{"T":["v","m"]},"frameTable":{"v":"#00: v","m":"#00: m"}}"##,
    );
    let expected = "\
p::A 80 0
  ? type unknown 80 2
p::BYTES 40 0
  ? [u8] 40 1
    ? type unknown 8 1
";
    assert_eq!(shown(&dump.expect("it is a dump")), expected);
}

#[test]
fn a_function_of_the_program_holds_what_functions_of_libraries_also_lead_to() {
    // The function of a library comes first; both lead to 3000, by blocks of their own.
    let blocks = r#"{"req":64,"addr":"1000","contents":["3000"]},{"req":32,"addr":"2000",
        "contents":["3000","4000"]},{"req":16,"addr":"3000"},{"req":8,"addr":"4000"}"#;
    let word = |thread: u64, offset: u64, to: u64| {
        let name = format!("stack of thread {thread}");
        format!(r#"{{"module":"(process)","offset":"{offset:x}","name":"{name}","to":"{to:x}"}}"#)
    };
    let words = [word(7, 0x7000, 0x2000), word(8, 0x8000, 0x1000)].join(",");
    let frames = r#""frames":[{"thread":7,"module":"/p","offset":"9","low":"7000","high":"7100"},
        {"thread":8,"module":"/p","offset":"9","low":"8000","high":"8100"}]"#;
    let shown_with = |outer: &str| {
        let mut dump = scan(blocks, &format!(r#""statics":[{words}],{frames}"#));
        let ours = dump.extension.as_mut().expect("it is ours");
        ours.frames[0].functions = vec!["<pool::Pool as Run>::run".into()];
        ours.frames[1].functions = vec![outer.into()];
        shown(&dump)
    };
    let expected = "\
thread 8 80 0
  p::main 80 0
    ? type unknown 80 2
thread 7 40 0
  <pool::Pool as Run>::run 40 0
    ? type unknown 40 2
";
    assert_eq!(shown_with("p::main"), expected);
    // Without a function `main` of a crate, no function is the program's.
    assert!(shown_with("p::cli::main").contains("held by several, and by none alone 16 0"));
}

#[test]
fn a_stack_has_the_name_of_its_thread() {
    let blocks = r#"{"req":64,"addr":"1000","contents":[]},{"req":32,"addr":"2000","contents":[]},
        {"req":16,"addr":"3000","contents":[]}"#;
    let words = r#""threads":[{"id":1,"tid":7,"name":"io"},{"id":2,"tid":8}],"statics":[
        {"module":"(process)","offset":"8","name":"registers of thread 7","to":"1000"},
        {"module":"(process)","offset":"8","name":"registers of thread 8","to":"2000"},
        {"module":"/p","offset":"8","name":"stack of thread 7","to":"3000"}]"#;
    let expected = "\
registers of thread 7 (io) 64 0
  ? type unknown 64 1
registers of thread 8 32 0
  ? type unknown 32 1
stack of thread 7 16 0
  ? type unknown 16 1
";
    assert_eq!(shown(&scan(blocks, words)), expected);
}

#[test]
fn what_nothing_refers_to_is_leaked_in_a_dump_with_all_roots() {
    let blocks = r#"{"req":64,"addr":"1000","contents":["2000"]},{"req":32,"addr":"2000",
        "contents":["1000"]},{"req":16,"addr":"3000"}"#;
    let found = shown(&scan(blocks, r#""allRoots":true,"statics":[]"#));
    let expected = "\
leaked: nothing refers to it 112 0
  type unknown 112 2
    ? type unknown 32 1
";
    assert_eq!(found, expected, "a cycle and a block");
}

#[test]
fn what_a_stack_leads_to_is_not_leaked_with_a_block_that_points_at_it() {
    let blocks = r#"{"req":64,"addr":"1000","contents":["3000"]},{"req":32,"addr":"2000",
        "contents":["3000"]},{"req":16,"addr":"3000","contents":["4000"]},{"req":8,"addr":"4000"},
        {"req":4,"addr":"5000","contents":["4000"]}"#;
    let words = r#""allRoots":true,"statics":[
        {"module":"(process)","offset":"8","name":"stack of thread 7","to":"1000"}]"#;
    let expected = "\
stack of thread 7 88 0
  ? type unknown 88 3
leaked: nothing refers to it 36 0
  type unknown 36 2
";
    assert_eq!(shown(&scan(blocks, words)), expected);
}

#[test]
fn a_word_with_a_tag_above_its_address_holds_what_nothing_else_does() {
    let blocks = r#"{"req":64,"addr":"1000","contents":["fff8000000003000"]},
        {"req":16,"addr":"3000","contents":["7ffa000000004000"]},{"req":8,"addr":"4000"}"#;
    let words = r#""statics":[{"module":"/p","offset":"8","name":"p::A","to":"1000"}]"#;
    let expected = "p::A 88 0\n  ? type unknown 88 3\n";
    assert_eq!(shown(&scan(blocks, words)), expected);
}

#[test]
fn a_dump_that_is_no_scan_is_refused() {
    let text = br##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},"blockList":[],
        "traceTable":{},"frameTable":{}}"##;
    let dump = read_slice(text).expect("it is a dump");
    let found = OwnerTree::new(&dump, &Types::default(), &OwnerTreeOptions::default());
    assert!(found.is_err());
}

fn sum_of_rows(rows: &[OwnerRow]) -> (u64, u64) {
    let sum = |(bytes, blocks): (u64, u64), row: &OwnerRow| {
        let below = sum_of_rows(&row.children);
        assert_eq!(row.bytes, row.own + below.0, "{}", row.name);
        (bytes + row.own + below.0, blocks + row.blocks + below.1)
    };
    rows.iter().fold((0, 0), sum)
}

proptest! {
    #[test]
    fn rows_of_any_dump_add_up_to_its_blocks(
        edges in proptest::collection::btree_set((0_u32..24, 0_u32..24), 0..60),
        known in proptest::collection::btree_set(0_u32..24, 0..4),
    ) {
        let dump = random::dump(24, &edges, &known);
        let tree = tree(&dump);
        let heap: u64 = dump.blocks.iter().map(|block| block.usable() * block.num).sum();
        prop_assert_eq!(sum_of_rows(&tree.rows), (heap, 24));
        prop_assert_eq!((tree.bytes, tree.blocks), (heap, 24));
        // What a static leads to is below a static, or held by several.
        let reached = reached(&edges, &known);
        let held = tree.named + tree.several;
        let expected: u64 = reached.iter().map(|&at| dump.blocks.at(at as usize).usable()).sum();
        let none = tree.rows.iter().filter(|row| row.name.starts_with("held from"));
        let none: u64 = none.map(|row| row.bytes).sum();
        prop_assert_eq!(held + none, heap);
        prop_assert!(held >= expected, "{} and {}", held, expected);
    }
}

/// Returns the blocks that the known ones lead to.
fn reached(edges: &BTreeSet<(u32, u32)>, known: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut reached = known.clone();
    loop {
        let more: Vec<u32> =
            edges.iter().filter(|edge| reached.contains(&edge.0)).map(|edge| edge.1).collect();
        let before = reached.len();
        reached.extend(more);
        if reached.len() == before {
            return reached;
        }
    }
}
