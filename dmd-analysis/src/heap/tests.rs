//! A heap that all formats show in tests, and tests of its tree and its growth.

use super::browse::{self, Axis, BrowseOptions, Name, Node, axes, browse};
use super::growth::{self, growth};
use super::{Heap, HeapOptions};
use crate::analysis::Totals;
use crate::read::read_slice;

/// A heap that is hard to write.
///
/// It has inlined functions, a semicolon and quotes in names, a stack that differs only in its
/// line, a block without a stack, one in a module without symbols, and all classes of blocks.
pub(crate) const HEAP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
"blockList":[
  {"req":4000,"slop":96,"alloc":"L","thread":1},
  {"req":65000,"slop":536,"num":20,"alloc":"C","thread":1,"reps":["R"]},
  {"req":1000000,"num":3,"alloc":"W","thread":2,"reps":["R","S"]},
  {"req":40,"slop":8,"alloc":"K","thread":1,"reps":["R"]},
  {"req":30,"slop":2,"alloc":"K2","thread":1,"reps":["R"]},
  {"req":24,"alloc":"U","thread":3},
  {"req":16}],
"memreport":{"version":1,"needs":[],"mode":"dark-matter","program":"/usr/bin/shop","pid":42,"uptimeMs":1500,
  "modules":[{"path":"/usr/lib/gone.so","buildId":"abcd","base":"7f0000000000"}],
  "threads":[{"id":1,"tid":42,"name":"main"},{"id":2,"tid":43,"name":"worker"}],
  "reports":{"R":{"path":"explicit/cache","type":"shop::Cache","field":"entries","file":"src/cache.rs","line":9},"S":{"path":"explicit/pool"}},
  "symbols":{
    "a":{"function":"__rust_alloc","name":"__rust_alloc","inlined":false},
    "v":{"function":"<alloc::vec::Vec<u8>>::with_capacity","name":"with_capacity<u8>","file":"/rustc/1/library/alloc/src/vec/mod.rs","line":500,"inlined":true},
    "l":{"function":"shop::load","file":"src/main.rs","line":12,"inlined":false},
    "s":{"function":"<String as Clone>::clone","name":"clone","file":"/rustc/1/library/alloc/src/string.rs","line":99,"inlined":true},
    "i":{"function":"shop::Cache::insert","file":"src/cache.rs","line":33,"inlined":false},
    "k":{"function":"<[u8; 4] as shop::\"Key\">::store","file":"src/key.rs","line":7,"inlined":false},
    "k2":{"function":"<[u8; 4] as shop::\"Key\">::store","file":"src/key.rs","line":8,"inlined":false},
    "g":{"function":"shop::Buffer::grow#1","file":"src/buffer.rs","line":10,"inlined":false},
    "w":{"function":"shop::work","file":"src/main.rs","line":60,"inlined":false},
    "m":{"function":"shop::main","file":"src/main.rs","line":40,"inlined":false}}},
"traceTable":{"L":["a","v","l","m"],"C":["a","s","i","m"],"W":["a","g","w"],"K":["a","k","m"],"K2":["a","k2","m"],"U":["u","m"],"R":["r"],"S":["t"]},
"frameTable":{"a":"#00: __rust_alloc","v":"#00: v","l":"#00: l","s":"#00: s","i":"#00: i","k":"#00: k","k2":"#00: k2",
  "g":"#00: g","w":"#00: w","m":"#00: m","u":"#00: ???[/usr/lib/gone.so +0x1234]","r":"#00: r","t":"#00: t"}}"##;

/// The bytes of that heap: 4,096 + 20 × 65,536 + 3 × 1,000,000 + 48 + 32 + 24 + 16.
pub(crate) const BYTES: i128 = 4_314_936;

fn heap(text: &str) -> Heap {
    Heap::new(&read_slice(text.as_bytes()).unwrap(), &HeapOptions::default()).unwrap()
}

fn shown(options: &BrowseOptions) -> String {
    let heap = heap(HEAP);
    let mut out = Vec::new();
    browse::write_text(&heap, &browse(&heap, options), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn stacks_have_types_within_and_small_nodes_are_one() {
    let expected = "\
shop: 4,314,936 live bytes in 28 blocks, 100.00% of the heap
        4,304,110  requested by the program
+          10,826  of slop, added by the allocator
=       4,314,936  in these blocks

          bytes    share      blocks
      3,000,000   69.53%           3  ƒ shop::work
      3,000,000   69.53%           3    ƒ shop::Buffer::grow#1
      3,000,000   69.53%           3      Ⓣ [unknown]
      1,314,920   30.47%          24  ƒ shop::main
      1,310,720   30.38%          20    ƒ shop::Cache::insert
      1,310,720   30.38%          20      ƒ <String as Clone>::clone
      1,310,720   30.38%          20        Ⓣ [unknown]
          4,200    0.10%           4    <other>: 3 below 1% each
             16    0.00%           1  <other>: 1 below 1%
";
    assert_eq!(shown(&BrowseOptions::default()), expected);
}

#[test]
fn types_have_stacks_within() {
    let by = vec![Axis::Type, Axis::stack()];
    let options = BrowseOptions {
        by,
        of_type: Some("[u8]".into()),
        min_percent: 0.0,
        ..BrowseOptions::default()
    };
    let expected = "\
shop: 4,096 live bytes in 1 block, 0.09% of the heap

          bytes    share      blocks
          4,096  100.00%           1  Ⓣ [u8]
          4,096  100.00%           1    ƒ shop::main
          4,096  100.00%           1      ƒ shop::load
          4,096  100.00%           1        ƒ <alloc::vec::Vec<u8>>::with_capacity
";
    assert_eq!(shown(&options), expected);
}

#[test]
fn a_function_can_be_stepped_into() {
    let options =
        BrowseOptions { within: Some("Cache::insert".into()), ..BrowseOptions::default() };
    let expected = "\
shop: 1,310,720 live bytes in 20 blocks, 30.38% of the heap

          bytes    share      blocks
      1,310,720  100.00%          20  ƒ shop::Cache::insert
      1,310,720  100.00%          20    ƒ <String as Clone>::clone
      1,310,720  100.00%          20      Ⓣ [unknown]
";
    assert_eq!(shown(&options), expected);
}

/// Returns the same heap with most of its blocks in two scopes, one inside the other.
pub(crate) fn scoped() -> String {
    HEAP.replace(r#""alloc":"W","thread":2"#, r#""alloc":"W","thread":2,"scope":2"#)
        .replace(r#""alloc":"C","thread":1"#, r#""alloc":"C","thread":1,"scope":1"#)
        .replace(
            r#""needs":[],"#,
            r#""needs":[],"scopes":[[0,"request"],[1,"search"]],"heapAllocated":5000000,
               "untracked":{"blocks":12,"bytes":685064},"trackerBytes":2097152,"#,
        )
}

#[test]
fn groups_are_apart_by_span_if_that_is_wanted() {
    let links = r#""spans":[[1,"0af7651916cd43dd8448eb211c80319c","b7ad6b7169203331"],
        [2,"0af7","b7ad6b7169203331"]],"heapAllocated""#;
    let text = scoped().replacen(r#""heapAllocated""#, links, 1);
    let dump = read_slice(text.as_bytes()).unwrap();
    let spans = |spans| {
        let heap = Heap::new(&dump, &HeapOptions { spans, ..HeapOptions::default() }).unwrap();
        let groups = heap.groups().filter(|group| group.span.is_some());
        groups.map(|group| (group.scope, group.span.unwrap().span[7])).collect::<Vec<_>>()
    };
    // The second link is defective: its scope is in the span of the scope around it.
    let search = (Some("request > search".to_owned()), 0x31);
    let found = spans(true);
    assert!(found.contains(&search) && found.contains(&(Some("request".to_owned()), 0x31)));
    assert_eq!(spans(false), []);
}

#[test]
fn scopes_have_types_and_stacks_within_and_the_account_is_whole() {
    let heap = heap(&scoped());
    let by = vec![Axis::Scope, Axis::Type, Axis::stack()];
    let options = BrowseOptions { by, ..BrowseOptions::default() };
    let mut out = Vec::new();
    browse::write_text(&heap, &browse(&heap, &options), &options, &mut out).unwrap();
    let expected = "\
shop: 5,000,000 live bytes in 40 blocks, 100.00% of the heap
        4,304,110  requested by the program
+          10,826  of slop, added by the allocator
+         685,064  in 12 blocks from before tracking began or while it was off
=       5,000,000  heap-allocated
        2,097,152  in the tracker's own tables, which none of these has

          bytes    share      blocks
      4,310,720   86.21%          23  Ⓢ request
      3,000,000   60.00%           3    Ⓢ search
      3,000,000   60.00%           3      Ⓣ [unknown]
      3,000,000   60.00%           3        ƒ shop::work
      3,000,000   60.00%           3          ƒ shop::Buffer::grow#1
      1,310,720   26.21%          20    <self>
      1,310,720   26.21%          20      Ⓣ [unknown]
      1,310,720   26.21%          20        ƒ shop::main
      1,310,720   26.21%          20          ƒ shop::Cache::insert
      1,310,720   26.21%          20            ƒ <String as Clone>::clone
          4,216    0.08%           5  <other>: 1 below 1%
        685,064   13.70%          12  (from before tracking began or while it was off)
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let part = BrowseOptions { in_scope: Some("search".into()), ..options };
    assert_eq!(browse(&heap, &part).totals.usable(), 3_000_000);
}

/// Asserts that the children of every node add up to it.
fn assert_adds_up(node: &Node) {
    let sum = node.children.iter().fold(Totals::default(), |sum, child| sum.plus(&child.totals));
    assert!(node.children.is_empty() || sum == node.totals, "{node:?}");
    node.children.iter().for_each(assert_adds_up);
}

#[test]
fn children_add_up_to_their_parent_wherever_it_is_cut() {
    // One stack is a part of another.
    let text = scoped().replace(r#""L":["a","v","l","m"]"#, r#""L":["a","m"]"#);
    let heap = heap(&text);
    for min_percent in [0.0, 0.05, 1.0, 50.0, 100.0] {
        for words in
            ["stack,type,scope", "type,stack,scope", "scope,stack,type", "thread,state,field"]
        {
            let by = axes(words.parse().unwrap()).unwrap();
            let tree =
                browse(&heap, &BrowseOptions { by, min_percent, ..BrowseOptions::default() });
            assert_eq!(tree.totals.usable(), 5_000_000, "with untracked blocks");
            assert_adds_up(&tree);
        }
    }
    let tree = browse(&heap, &BrowseOptions { min_percent: 0.0, ..BrowseOptions::default() });
    let main =
        tree.children.iter().find(|child| child.name == Name::Frame("shop::main".into())).unwrap();
    let own = main.children.iter().find(|child| child.name == Name::Own).unwrap();
    assert_eq!(own.totals.usable(), 4_096);
    let mut out = Vec::new();
    browse::write_json(&heap, &tree, &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        (&value["bytes"], &value["kids"][0]["name"]),
        (&5_000_000.into(), &"shop::work".into())
    );
}

#[test]
fn the_greatest_growth_is_first_and_the_rest_is_one_line() {
    let grown = HEAP
        .replace(r#""req":1000000,"num":3"#, r#""req":1000000,"num":5"#)
        .replace(r#""req":65000,"slop":536,"num":20"#, r#""req":65000,"slop":536,"num":19"#)
        .replace(r#"{"req":16}"#, r#"{"req":16},{"req":32,"alloc":"L"}"#)
        // Another build has other lines.
        .replace("\"line\":60", "\"line\":61");
    let growth = growth(&heap(HEAP), &heap(&grown));
    let mut out = Vec::new();
    growth::write_text(&growth, 1, &mut out).unwrap();
    let expected = "\
+1,934,496 bytes in +2 blocks: from 4,314,936 in 28 to 6,249,432 in 30

+2,000,000 bytes in +2 blocks (from 3,000,000 to 5,000,000): [unknown]
    shop::Buffer::grow#1 (src/buffer.rs:10)
    shop::work (src/main.rs:61)

-65,504 bytes in 0 blocks: <other>, 2 places behind the first 1; 1 of them shrank
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let sampled = HEAP.replace(r#""needs":[],"#, r#""needs":[],"sampled":{"sampleBytes":4096},"#);
    assert!(!growth.is_estimate && growth::growth(&heap(HEAP), &heap(&sampled)).is_estimate);
    let bytes: Vec<i128> = growth.places.iter().map(growth::Place::bytes).collect();
    assert_eq!(bytes, [2_000_000, 32, -65_536]);
    let mut out = Vec::new();
    growth::write_json(&growth, 2, &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["places"][1]["type"], "[u8]");
    assert_eq!(value["other"], serde_json::json!({"places": 1, "bytes": -65_536, "blocks": -1}));
}

#[test]
fn the_site_of_a_stack_is_its_first_frame_of_the_programs_own_code() {
    let heap = heap(HEAP);
    let stacks = 0..u32::try_from(heap.stacks.len()).unwrap();
    let sites: Vec<String> =
        stacks.filter_map(|stack| Some(heap.site(stack)?.function.to_owned())).collect();
    for own in ["shop::load", "shop::Cache::insert", "shop::Buffer::grow#1"] {
        assert!(sites.iter().any(|site| site == own), "{sites:?}");
    }
}

#[test]
fn alike_blocks_have_one_row_however_they_are_mixed() {
    let block = |stack: &str, req: u64| format!(r#"{{"req":{req},"alloc":"{stack}"}}"#);
    let kinds = [("K", 40), ("K2", 40), ("K", 30), ("L", 4096), ("K2", 30)];
    // Each as often as its place tells, and never twice in a row.
    let blocks = (1..=kinds.len()).flat_map(|round| &kinds[kinds.len() - round..]);
    let list: Vec<String> = blocks.map(|&(stack, req)| block(stack, req)).collect();
    let (start, rest) = HEAP.split_once(r#""blockList":["#).unwrap();
    let (_, end) = rest.split_once("],").unwrap();
    let text = format!(r#"{start}"blockList":[{}],{end}"#, list.join(","));
    let rows = heap(&text).rows;
    let mut amounts: Vec<_> = rows.iter().map(|row| (row.kind.size, row.live.blocks)).collect();
    amounts.sort_unstable();
    assert_eq!(amounts, [(30, 3), (30, 5), (40, 1), (40, 2), (4096, 4)]);
}
