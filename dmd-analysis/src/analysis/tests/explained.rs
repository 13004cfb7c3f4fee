//! The texts for people, on one small dump.

use crate::analysis::{ExplainOptions, explain, write_explained, write_summary};
use crate::read::read_slice;

pub(super) const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"dark-matter"},
"memreport":{"version":1,"needs":[],"reports":{
    "R":{"path":"explicit/index","type":"subject::Index","field":"words","file":"/s/src/main.rs","line":12},
    "S":{"path":"explicit/store"}},
  "wrong":[
    {"is":"non-heap","addr":"7ffe10","claimed":24,"rep":"S","num":2},
    {"is":"partial","addr":"5610","claimed":64,"rep":"R","num":1,"usable":112,"req":100,"alloc":"A"}]},
"blockList":[{"req":1000,"slop":24,"alloc":"A","num":2},{"req":8,"alloc":"L"},{"req":40,"alloc":"B","reps":["R","S"]},
  {"req":900,"alloc":"B","reps":["R"]},{"req":1}],
"traceTable":{"A":["v","i","m"],"B":["m"],"L":["j","i"],"R":["r"],"S":["s"]},
"frameTable":{"v":"#00: push<u8> (/rustc/1/library/alloc/src/vec/mod.rs:9)","i":"#00: subject::Lexicon::intern (/s/src/lexicon.rs:41)",
  "m":"#00: subject::main (/s/src/main.rs:3)","j":"#00: serde_json::parse (/c/registry/src/i/serde_json-1.0.1/src/de.rs:5)",
  "r":"#00: Index.words","s":"#00: explicit/store"}}"##;

const EXPECTED: &str = "\
2,057 of 2,997 bytes (68.64%) are unreported: no reporter covers 4 blocks.
40 bytes in 1 block are reported twice; 3 reports are wrong.

The 2 biggest of 3 unreported places:
  1. 2,048 bytes in 2 blocks, 68.34% of the heap: type unknown, allocated in subject::Lexicon::intern
     subject::Lexicon::intern (src/lexicon.rs:41)
  2. 8 bytes in 1 block, 0.27% of the heap: type unknown, allocated in serde_json::parse
     subject::Lexicon::intern (src/lexicon.rs:41), through serde_json
     → perhaps enable feature \"serde_json\" of memreport
     … and 1 more place with 1 byte, 0.03% of the heap

Reported twice:
  1. 40 bytes in 1 block: type unknown, allocated in subject::main
     subject::main (src/main.rs:3)
     reported by explicit/index: subject::Index.words (src/main.rs:12)
     and again by explicit/store
     → explicit/store counts by hand what subject::Index.words owns: leave it out there

Wrong reports:
  non-heap: 2 reports of 48 bytes that are in no heap block, by explicit/store
     → explicit/store takes bytes that are in no heap block for one: leave them out, or report them with Report::non_heap
  partial: 1 report of 64 bytes for blocks of 112 bytes, by explicit/index: subject::Index.words (src/main.rs:12)
     → subject::Index.words claims 64 bytes of a block made with 100: give Ops::block the layout that it was made with

Twice-reported {
  1 block at place 1 of 1
  40 bytes (40 requested / 0 slop)
  type unknown, allocated in subject::main
  Allocated at {
    #01: subject::main (src/main.rs:3)
  }
  Reported by explicit/index: subject::Index.words (src/main.rs:12)
  Reported again by explicit/store
  → explicit/store counts by hand what subject::Index.words owns: leave it out there
}

Unreported {
  2 blocks at place 1 of 3
  2,048 bytes (2,000 requested / 48 slop)
  type unknown, allocated in subject::Lexicon::intern
  Allocated at {
    #01: subject::Lexicon::intern (src/lexicon.rs:41)
    #02: subject::main (src/main.rs:3)
  }
}

Unreported {
  1 block at place 2 of 3
  8 bytes (8 requested / 0 slop)
  type unknown, allocated in serde_json::parse
  Allocated at {
    #01: serde_json::parse (serde_json-1.0.1/src/de.rs:5)
    #02: subject::Lexicon::intern (src/lexicon.rs:41)
  }
  → perhaps enable feature \"serde_json\" of memreport
}

Wrong (non-heap) {
  2 reports
  48 bytes claimed; the first at 0x7ffe10
  Reported by explicit/store
  → explicit/store takes bytes that are in no heap block for one: leave them out, or report them with Report::non_heap
}

Wrong (partial) {
  1 report
  64 bytes claimed, the blocks have 112 bytes; the first at 0x5610
  Reported by explicit/index: subject::Index.words (src/main.rs:12)
  type unknown, allocated in subject::Lexicon::intern
  Allocated at {
    #01: subject::Lexicon::intern (src/lexicon.rs:41)
    #02: subject::main (src/main.rs:3)
  }
  → subject::Index.words claims 64 bytes of a block made with 100: give Ops::block the layout that it was made with
}

";

pub(super) fn options() -> ExplainOptions {
    ExplainOptions { top: 2, root: Some("/s".to_owned()), ..ExplainOptions::default() }
}

#[test]
fn a_summary_to_act_on_then_the_records() {
    let explained = explain(&read_slice(DUMP.as_bytes()).unwrap(), &options());
    let mut out = Vec::new();
    write_explained(&explained, &options(), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), EXPECTED);
}

#[test]
fn the_books_balance() {
    let explained = explain(&read_slice(DUMP.as_bytes()).unwrap(), &options());
    // Unreported, less the double and what is not on the heap; and what the partial report lacks.
    assert_eq!(explained.heap_unclassified(), 2_057 - 40 - 48 + (112 - 64));
}

#[test]
fn a_row_of_several_types_says_so() {
    let text = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"dark-matter"},
        "memreport":{"version":1,"needs":[],"reports":{},"features":[]},
        "blockList":[{"req":4000,"alloc":"A"},{"req":3000,"alloc":"B"}],
        "traceTable":{"A":["a","m"],"B":["b","m"]},
        "frameTable":{
            "a":"#00: <smallvec::SmallVec<[u32; 4]>>::try_grow (/r/smallvec-1.13.2/src/lib.rs:1)",
            "b":"#00: <smallvec::SmallVec<[u64; 4]>>::try_grow (/r/smallvec-1.13.2/src/lib.rs:1)",
            "m":"#00: shop::main (/s/src/main.rs:2)"}}"##;
    let mut out = Vec::new();
    write_summary(
        &explain(&read_slice(text.as_bytes()).unwrap(), &options()),
        &options(),
        &mut out,
    )
    .unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("7,000 bytes in 2 blocks"), "{text}");
    assert!(text.contains("SmallVec<[u32; 4]>>::try_grow and other types\n"), "{text}");
}

#[test]
fn places_with_one_cause_are_one_row_and_small_ones_are_only_counted() {
    let text = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"dark-matter"},
        "memreport":{"version":1,"needs":[],"reports":{}},
        "blockList":[{"req":4000,"alloc":"A"},{"req":3000,"alloc":"B"},{"req":5000,"alloc":"C"},
            {"req":7,"alloc":"D"}],
        "traceTable":{"A":["f","x"],"B":["f","y"],"C":["g"],"D":["h"]},
        "frameTable":{"f":"#00: shop::load (/s/src/main.rs:1)","x":"#00: shop::a (/s/src/main.rs:2)",
            "y":"#00: shop::b (/s/src/main.rs:3)","g":"#00: shop::find (/s/src/main.rs:4)",
            "h":"#00: shop::log (/s/src/main.rs:5)"}}"##;
    let options = ExplainOptions { top: 3, ..options() };
    let mut out = Vec::new();
    write_summary(&explain(&read_slice(text.as_bytes()).unwrap(), &options), &options, &mut out)
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    let expected = "The 2 biggest of 4 unreported places:
  1. 7,000 bytes in 2 blocks, 58.30% of the heap: type unknown, allocated in shop::load
     shop::load (src/main.rs:1), and 1 place alike
  2. 5,000 bytes in 1 block, 41.64% of the heap: type unknown, allocated in shop::find
     shop::find (src/main.rs:4)
     … and 1 more place with 7 bytes, 0.06% of the heap
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn classes_come_in_one_order() {
    let dump = read_slice(DUMP.as_bytes()).unwrap();
    for _ in 0..20 {
        let explained = explain(&dump, &options());
        let classes: Vec<_> = explained.places.iter().map(|of| of.class).collect();
        assert!(classes.len() == 3 && classes.is_sorted(), "{classes:?}");
    }
}

#[test]
fn wrong_reports_of_any_size_are_added_up() {
    let most = u64::MAX;
    let wrong = format!(r#""claimed":{most},"rep":"S","num":{most}}},"#);
    let text = DUMP.replace(r#""claimed":24,"rep":"S","num":2},"#, &wrong);
    let again = text.replace(
        r#""claimed":64,"rep":"R","num":1,"usable":112"#,
        &format!(r#""claimed":{most},"rep":"R","num":{most},"usable":{most}"#),
    );
    let explained = explain(&read_slice(again.as_bytes()).unwrap(), &options());
    assert_eq!(explained.wrong[0].claimed, i128::MAX);
    assert!(explained.heap_unclassified() < 0);
    let mut out = Vec::new();
    write_explained(&explained, &options(), &mut out).unwrap();
}
