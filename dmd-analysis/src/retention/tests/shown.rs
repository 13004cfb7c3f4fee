//! The texts and JSON of small dumps.

use super::super::{PathOptions, Retention, Target, TargetNotFound, TreeOptions};
use super::super::{
    write_cycles, write_groups, write_tree, write_tree_json, write_why_alive, write_why_alive_json,
};
use super::random::dump;
use crate::analysis::{ClampError, ExplainOptions};
use crate::axis::Axis;
use crate::read::{Dump, read_slice};
use crate::symbols::{Layout, Member, Members};

/// A shop. Static STOCK holds a list of two shelves, and a window shares the first shelf. A
/// reporter counts the goods of the shelves. Two customers hold each other, and a third one holds
/// itself, with one more handle elsewhere. A skipped field holds a list of five links.
const SHOP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"--mode=scan","mode":"scan"},"blockList":[
  {"req":16,"addr":"1000","alloc":"V","contents":["2000","2100"]},
  {"req":100,"addr":"2000","alloc":"S","contents":["0","3000"]},
  {"req":100,"addr":"2100","alloc":"S","contents":["0","3100"]},
  {"req":5000,"slop":120,"addr":"3000","alloc":"G","reportedBy":["R"]},
  {"req":3000,"addr":"3100","alloc":"G","reportedBy":["R"]},
  {"req":24,"addr":"4000","alloc":"W","contents":["2008"]},
  {"req":64,"addr":"5000","alloc":"C","contents":["1","1","0","5100"]},
  {"req":64,"addr":"5100","alloc":"C","contents":["1","2","0","5000","0","5100"]},
  {"req":64,"addr":"5200","alloc":"C","contents":["2","1","0","5200"]},
  {"req":32,"addr":"6000","alloc":"L","heldBy":"H","contents":["6100"]},
  {"req":32,"addr":"6100","alloc":"L","heldThrough":"H","contents":["6200"]},
  {"req":32,"addr":"6200","alloc":"L","heldThrough":"H","contents":["6300"]},
  {"req":32,"addr":"6300","alloc":"L","heldThrough":"H","contents":["6400"]},
  {"req":32,"addr":"6400","alloc":"L","heldThrough":"H","contents":["6508"]},
  {"req":500,"addr":"6500","alloc":"G"}],
"memreport":{"version":1,"program":"/usr/bin/shop",
  "reports":{"R":{"path":"explicit/stock","type":"shop::Shelf","field":"goods","file":"src/shelf.rs","line":9}},
  "holders":{"H":{"type":"shop::Till","field":"queue","file":"src/till.rs","line":3,"reason":"short"}},
  "statics":[{"module":"/usr/bin/shop","offset":"10","name":"shop::STOCK","to":"1000"},
             {"module":"/usr/bin/shop","offset":"18","to":"ffff"}],
  "symbols":{
    "v":{"function":"f","name":"grow_one<alloc::sync::Arc<shop::Shelf>>","file":"/rustc/1/library/alloc/src/raw_vec/mod.rs","line":1,"inlined":true},
    "s":{"function":"f","name":"new<shop::Shelf>","file":"/rustc/1/library/alloc/src/boxed.rs","line":1,"inlined":true},
    "g":{"function":"f","name":"with_capacity<u8>","file":"/rustc/1/library/alloc/src/vec/mod.rs","line":1,"inlined":true},
    "c":{"function":"f","name":"new<alloc::rc::RcInner<shop::Customer>>","file":"/rustc/1/library/alloc/src/boxed.rs","line":1,"inlined":true},
    "l":{"function":"f","name":"new<shop::Link>","file":"/rustc/1/library/alloc/src/boxed.rs","line":1,"inlined":true},
    "m":{"function":"shop::open","file":"src/main.rs","line":7,"inlined":false}}},
"traceTable":{"V":["v","m"],"S":["s","m"],"G":["g","m"],"C":["c","m"],"L":["l","m"],"W":["m"],"R":["r"]},
"frameTable":{"v":"#00: v","s":"#00: s","g":"#00: g","c":"#00: c","l":"#00: l","m":"#00: m","r":"#00: r"}}"##;

fn member(offset: u64, name: &str) -> Member {
    Member { offset, name: name.to_owned() }
}

fn shop() -> Dump {
    read_slice(SHOP.as_bytes()).unwrap()
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_tree_has_retained_sizes() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let tree = retention.tree(&TreeOptions { top: 10, min_percent: 1.0, depth: 5 });
    let expected = "\
shop: 9,212 bytes in 15 blocks

retained   share      own blocks
   5,220  56.67%                  held by several, and by none alone
   5,220  56.67%      100      1    0x2000: Box<shop::Shelf>, shop::open (src/main.rs:7)
   5,120  55.58%    5,120      1      0x3000: [u8], shop::open (src/main.rs:7)
   3,116  33.83%                  static shop::STOCK
   3,116  33.83%       16      1    0x1000: [Arc<shop::Shelf>], shop::open (src/main.rs:7)
   3,100  33.65%      100      1      0x2100: Box<shop::Shelf>, shop::open (src/main.rs:7)
   3,000  32.57%    3,000      1        0x3100: [u8], shop::open (src/main.rs:7)
     660   7.16%                  skipped field shop::Till.queue (src/till.rs:3)
     660   7.16%      160      5    Box<shop::Link>, shop::open (src/main.rs:7)
     500   5.43%      500      1      0x6500: [u8], shop::open (src/main.rs:7)
     216   2.34%                  held from a stack or a library, or leaked
     128   1.39%                    1 leaked cycle
     128   1.39%      128      2      Rc<shop::Customer>, shop::open (src/main.rs:7)
      88   0.96%                    <other>: 2
";
    assert_eq!(text(|out| write_tree(&retention, &tree, out)), expected);
}

#[test]
fn omitted_nodes_are_in_other() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let tree = retention.tree(&TreeOptions { top: 1, min_percent: 0.0, depth: 2 });
    let expected = "\
shop: 9,212 bytes in 15 blocks

retained   share      own blocks
   5,220  56.67%                  held by several, and by none alone
   5,220  56.67%      100      1    0x2000: Box<shop::Shelf>, shop::open (src/main.rs:7)
   5,120  55.58%                      <other>: 1
   3,992  43.33%                  <other>: 3
";
    assert_eq!(text(|out| write_tree(&retention, &tree, out)), expected);
}

#[test]
fn a_cycle_is_leaked_if_all_that_its_blocks_count_is_in_it() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let mut cycles = retention.cycles();
    let steps = cycles.iter().flat_map(|cycle| &cycle.steps);
    assert_eq!(retention.pointing_types(steps), ["shop::Customer"]);
    let members = Members::from([(
        "shop::Customer".into(),
        Layout { size: 16, fields: vec![member(0, "name"), member(8, "friend")] },
    )]);
    retention.name_fields(cycles.iter_mut().flat_map(|cycle| &mut cycle.steps), &members);
    let expected = "\n\
2 cycles that nothing outside points at; they retain 192 bytes:
  1. 128 bytes in a cycle of 2 blocks
     leaked: every handle that its blocks count is in the cycle itself
     allocated at shop::open (src/main.rs:7)
     0x5000: 64 bytes, Rc<shop::Customer>
     → 0x5100: 64 bytes, Rc<shop::Customer>, by .friend (byte 24)
     → 0x5000: 64 bytes, Rc<shop::Customer>, by .friend (byte 24)
  2. 64 bytes in a cycle of 1 block
     1 handle is in no block: on a stack, in a library, or forgotten
     allocated at shop::open (src/main.rs:7)
     0x5200: 64 bytes, Rc<shop::Customer>
     → 0x5200: 64 bytes, Rc<shop::Customer>, by .friend (byte 24)
";
    assert_eq!(text(|out| write_cycles(&retention, &cycles, 5, out)), expected);
}

#[test]
fn paths_pass_named_statics_and_fields() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let table = [
        (
            Target::Block(0x3001),
            "\
0x3000: 5,120 bytes, [u8]
  allocated at shop::open (src/main.rs:7)
  retains 5,120 bytes, 55.58% of the heap
  every path to it leads through 0x2000: 100 bytes, Box<shop::Shelf>

The 2 shortest paths to it:
  1. 3 steps
     held from a stack or a library, or leaked
     → 0x4000: 24 bytes, type unknown, allocated in shop::open
     → 0x2000: 100 bytes, Box<shop::Shelf>, by byte 0, into byte 8
     → 0x3000: 5,120 bytes, [u8], by .goods (byte 8)
  2. 3 steps
     static shop::STOCK
     → 0x1000: 16 bytes, [Arc<shop::Shelf>]
     → 0x2000: 100 bytes, Box<shop::Shelf>, by byte 0
     → 0x3000: 5,120 bytes, [u8], by .goods (byte 8)
",
        ),
        (
            Target::Block(0x4000),
            "\
0x4000: 24 bytes, type unknown, allocated in shop::open
  allocated at shop::open (src/main.rs:7)
  retains 24 bytes, 0.26% of the heap
  no block or static is on every path to it

The shortest path to it:
  1. 1 step
     held from a stack or a library, or leaked
     → 0x4000: 24 bytes, type unknown, allocated in shop::open
",
        ),
    ];
    for (target, expected) in table {
        let why = retention.why_alive(&target, &PathOptions::default()).unwrap();
        assert_eq!(text(|out| write_why_alive(&retention, &why, out)), expected, "{target:?}");
    }
}

#[test]
fn alike_paths_of_several_blocks_are_grouped() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let why = retention.why_alive(&Target::Type("[u8]".into()), &PathOptions::default()).unwrap();
    let expected = "\
3 blocks, 8,620 bytes; together they retain 8,620 bytes, 93.57%

By the shortest path to each:
  1. 1 block, 5,120 bytes; to this one by 3 steps
     held from a stack or a library, or leaked
     → 0x4000: 24 bytes, type unknown, allocated in shop::open
     → 0x2000: 100 bytes, Box<shop::Shelf>, by byte 0, into byte 8
     → 0x3000: 5,120 bytes, [u8], by .goods (byte 8)
  2. 1 block, 3,000 bytes; to this one by 3 steps
     static shop::STOCK
     → 0x1000: 16 bytes, [Arc<shop::Shelf>]
     → 0x2100: 100 bytes, Box<shop::Shelf>, by byte 8
     → 0x3100: 3,000 bytes, [u8], by .goods (byte 8)
  3. 1 block, 500 bytes; to this one by 6 steps
     skipped field shop::Till.queue (src/till.rs:3)
     → 0x6000: 32 bytes, Box<shop::Link>
       … 3 more of the same kind in a row
     → 0x6400: 32 bytes, Box<shop::Link>, by byte 0
     → 0x6500: 500 bytes, [u8], by byte 0, into byte 8
";
    assert_eq!(text(|out| write_why_alive(&retention, &why, out)), expected);
}

#[test]
fn paths_end_at_roots_whatever_the_number_of_blocks() {
    for blocks in 62..=66 {
        let edges = (1..blocks - 1).map(|block| (0, block)).collect();
        let dump = dump(blocks as usize, &edges, &[0].into());
        let options = ExplainOptions::default();
        let retention = Retention::new(&dump, &options).unwrap();
        let why = retention.why_alive(&Target::Site("a.rs".into()), &PathOptions::default());
        let why = why.unwrap();
        assert_eq!(why.blocks, blocks.div_ceil(2) as usize, "every other block");
        let shown: u64 = why.paths.iter().map(|path| path.blocks).sum();
        assert_eq!(shown + why.blocks_by_other_paths, u64::from(blocks.div_ceil(2)));
    }
}

#[test]
fn targets_match_blocks() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let by = |target| retention.blocks_of(&target);
    assert_eq!(by(Target::Reporter("explicit/stock".into())), [3, 4]);
    assert_eq!(by(Target::Reporter("Shelf.goods".into())), [3, 4]);
    assert_eq!(by(Target::Record(1)), [3, 4, 14]);
    assert_eq!(by(Target::Site("open".into())).len(), 15);
    let none = [Target::Record(0), Target::Record(99), Target::Site("shut".into())];
    for target in none {
        let error = retention.why_alive(&target, &PathOptions::default());
        assert_eq!(error, Err(TargetNotFound(target)));
    }
}

#[test]
fn groups_overlap_in_what_they_retain() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let shown =
        |by: &Axis, top| text(|out| write_groups(&retention, &retention.groups(by, top), out));
    let expected = "\
shop: 9,212 bytes in 15 blocks

retained   share      own blocks
   8,620  93.57%    8,620      3  [u8]
   8,320  90.32%      200      2  Box<shop::Shelf>
   3,116  33.83%       16      1  [Arc<shop::Shelf>]
         … and 3 more
";
    assert_eq!(shown(&Axis::Type, 3), expected);
    let expected = "\
shop: 9,212 bytes in 15 blocks

retained   share      own blocks
   9,212 100.00%    1,092     13  (not reported)
   8,120  88.15%    8,120      2  shop::Shelf.goods
";
    assert_eq!(shown(&Axis::Field, 3), expected);
}

#[test]
fn json_has_the_same_values() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let tree = retention.tree(&TreeOptions::default());
    let json = text(|out| write_tree_json(&retention, &tree, &retention.cycles(), out));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["heap"]["retained"], retention.heap());
    assert_eq!(json["heap"]["kids"][1]["name"], "shop::STOCK");
    assert_eq!(
        (json["cycles"][0]["counts"].as_str(), json["cycles"][0]["retained"].as_u64()),
        (Some("leaked"), Some(128))
    );
    let why = retention.why_alive(&Target::Block(0x3000), &PathOptions::default()).unwrap();
    let json = text(|out| write_why_alive_json(&retention, &why, out));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["retained"], 5120);
    let last = json["ways"][0]["steps"].as_array().and_then(|steps| steps.last()).unwrap();
    assert_eq!(
        (&last["address"], &last["at"], &last["field"]),
        (&"3000".into(), &8.into(), &"shop::Shelf.goods".into())
    );
}

#[test]
fn missing_targets_are_errors() {
    let (dump, options) = (shop(), ExplainOptions::default());
    let retention = Retention::new(&dump, &options).unwrap();
    let table = [
        (Target::Block(0x9999), "no block holds 0x9999: "),
        (Target::TypeWith("Zebra".into()), "no block is of a type with `Zebra` in its name: "),
        (
            Target::Reporter("x/y".into()),
            "no block is reported by a path or field with `x/y` in its name: ",
        ),
        (
            Target::Site("nowhere".into()),
            "no block was allocated below a function with `nowhere` in its name: ",
        ),
        (Target::Record(0), "there is no record 0: "),
        (Target::Record(99), "there is no record 99: "),
    ];
    for (target, expected) in table {
        let error = retention.why_alive(&target, &PathOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let live =
        read_slice(SHOP.replace("\"mode\":\"scan\"", "\"mode\":\"live\"").as_bytes()).unwrap();
    assert_eq!(Retention::new(&live, &options).unwrap_err(), ClampError::NotScan);
    let empty = SHOP.split_once("\"blockList\":[").unwrap().0.to_owned()
        + r#""blockList":[],"traceTable":{},"frameTable":{}}"#;
    let empty = read_slice(empty.as_bytes()).unwrap();
    let retention = Retention::new(&empty, &options).unwrap();
    assert_eq!((retention.heap(), retention.tree(&TreeOptions::default()).children.len()), (0, 0));
}

#[test]
fn a_narrow_line_has_the_type_and_the_end_of_the_place() {
    let dump = shop();
    let options = ExplainOptions { width: 72, ..ExplainOptions::default() };
    let retention = Retention::new(&dump, &options).unwrap();
    let tree = retention.tree(&TreeOptions { top: 2, min_percent: 1.0, depth: 2 });
    let expected = "\
shop: 9,212 bytes in 15 blocks

retained   share      own blocks
   5,220  56.67%                  held by several, and by none alone
   5,220  56.67%      100      1    0x2000:…p::Shelf>, shop::o…ain.rs:7)
   5,120  55.58%                      <other>: 1
   3,116  33.83%                  static shop::STOCK
   3,116  33.83%       16      1    0x1000:…::Shelf>], shop::o…ain.rs:7)
   3,100  33.65%                      <other>: 1
     876   9.51%                  <other>: 2
";
    let text = text(|out| write_tree(&retention, &tree, out));
    assert!(text.lines().all(|line| line.chars().count() <= 72), "{text}");
    assert_eq!(text, expected);
}

#[test]
fn a_long_path_is_printed_by_its_ends() {
    // A chain of a hundred blocks, of two kinds in turn.
    let edges = (0..99).map(|node| (node, node + 1)).collect();
    let dump = dump(100, &edges, &[0].into());
    let options = ExplainOptions::default();
    let retention = Retention::new(&dump, &options).unwrap();
    let why = retention.why_alive(&Target::Block(0x64000), &PathOptions::default()).unwrap();
    let text = text(|out| write_why_alive(&retention, &why, out));
    assert_eq!(why.paths[0].steps.len(), 101);
    assert!(text.contains("     static p::ONE\n     → 0x1000: 256 bytes, "), "{text}");
    assert!(text.contains("\n       … 71 more steps\n     → 0x56000: "), "{text}");
    assert!(
        text.ends_with("→ 0x64000: 355 bytes, type unknown, allocated in b, by byte 0\n"),
        "{text}"
    );
}

#[test]
fn a_long_field_takes_half_of_a_narrow_line() {
    let dump = shop();
    let options = ExplainOptions { width: 72, ..ExplainOptions::default() };
    let retention = Retention::new(&dump, &options).unwrap();
    let mut cycles = retention.cycles();
    let name = "friend_".repeat(8);
    let fields = vec![member(8, &name)];
    let members = Members::from([("shop::Customer".into(), Layout { size: 16, fields })]);
    retention.name_fields(cycles.iter_mut().flat_map(|cycle| &mut cycle.steps), &members);
    let text = text(|out| write_cycles(&retention, &cycles, 5, out));
    let pointers = text.lines().filter_map(|line| line.find(", by ").map(|at| &line[at..]));
    let widths: Vec<usize> = pointers.map(|pointer| pointer.chars().count()).collect();
    assert_eq!(widths, [36; 3], "{text}");
}
