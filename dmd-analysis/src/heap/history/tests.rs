//! A recording that all formats show in tests, and tests of its heap.
//!
//! It has two threads, a block that one thread allocates and the other frees, one in a scope, and a
//! sampled one that stands for four and a half.

use super::{HeapOptions, History};
use crate::heap::{Heap, StackKind};
use crate::recording::{Which, read};

const LINES: &str = r#"{"recording":1,"program":"/usr/bin/shop","pid":42,"startedMs":1700000000000,"sampleBytes":4096}
["=",0,1000,1,0,0,4096]
["thread",1,42,"main"]
["site",1,1,["10","20"],0]
["+",1000,1,4096,4000,4096]
["scope",0,"request"]
["scope",1,"search"]
["thread",2,43,"worker"]
["site",2,2,["30","40"],2]
["+",1000,2,8192,100,112,4.5]
["=",0,12000,6,0,0,8192]
["!",500,"gc"]
["!",0,"report: at exit"]
["-",500,4096,2]
["+",0,2,4096,60,64]
["=",1000,12100,7,4100,1,8192]
["-",1000,8192,2]
["=",5000,12100,7,5000,5,8192]
{"end":true,"events":5,"lost":0}
"#;

/// Half of the program's frames have lines.
const FRAMES: [(&str, &str); 4] = [
    ("+0x10]", "#00: shop::load (src/main.rs:12)"),
    ("+0x20]", "#00: shop::main (src/main.rs:40)"),
    ("+0x30]", "#00: shop::find (src/find.rs:7)"),
    ("+0x40]", "#00: shop::work"),
];

pub(crate) fn history() -> History {
    named(LINES.as_bytes())
}

/// Returns the same history, but the first block is freed at the site of the second one.
pub(crate) fn history_with_free_stacks() -> History {
    let header = LINES.replacen("4096}", "4096,\"freeStacks\":true}", 1);
    let (before, after) = header.split_once("[\"-\",500,4096,2]\n").unwrap();
    // 500 µs later, the block at 4096 of 4096 bytes was freed by thread 2 at site 2.
    let free = [31 << 3 | 1 << 2 | 1, 0xd5, 3, 0x80, 0x40, 2, 0x80, 0x20, 2];
    let piece = format!("[\"packed\",{}]\n", free.len());
    named(&[before.as_bytes(), piece.as_bytes(), &free, after.as_bytes()].concat())
}

fn named(recording: &[u8]) -> History {
    let mut history = History::new(read(recording).unwrap()).unwrap();
    for frame in &mut history.sites.frames {
        let name = FRAMES.iter().find(|(address, _)| frame.text.ends_with(address)).unwrap().1;
        frame.text = name.into();
    }
    history
}

/// Returns each row as a line: live bytes and blocks, allocated ones, functions, thread and scope.
fn rows(heap: &Heap) -> Vec<String> {
    let row = |row: &crate::heap::Row| {
        let functions: Vec<&str> =
            heap.stack(row.kind.stack).map(|frame| &*frame.function).collect();
        let text = |id: Option<u32>| id.map_or("-", |id| heap.text(id));
        format!(
            "{} in {}, {} in {}: {}; {}; {}",
            row.live.usable(),
            row.live.blocks,
            row.allocated.usable(),
            row.allocated.blocks,
            functions.join(" < "),
            text(row.kind.thread),
            heap.scope(row.kind.scope).as_deref().unwrap_or("-")
        )
    };
    heap.rows.iter().map(row).collect()
}

#[test]
fn the_heap_of_a_moment_has_the_blocks_that_are_live_then() {
    let history = history();
    let heap = |at| rows(&history.heap(at, &HeapOptions::default()).unwrap());
    let load = "4096 in 1, 4096 in 1: shop::load < shop::main; main (1); -";
    let find = "504 in 5, 504 in 5: shop::find < shop::work; worker (2); request > search";
    let last = "64 in 1, 64 in 1: shop::find < shop::work; worker (2); request > search";
    assert_eq!(heap(999), [""; 0]);
    assert_eq!(heap(1000), [load]);
    assert_eq!(heap(2999), [load, find]);
    assert_eq!(heap(3000), [find, last]);
    assert_eq!(heap(history.recording().length), [last]);
    let times = [999, 1000, 2999, 3000, history.recording().length];
    let heaps = history.heaps(&times, &HeapOptions::default()).unwrap();
    let mut in_turn = history.heaps_in_turn(&times, &HeapOptions::default()).unwrap();
    for (at, of_several) in times.into_iter().zip(&heaps) {
        assert_eq!(heap(at), rows(of_several));
        assert_eq!(of_several.process.uptime_ms, at / 1000);
        let in_turn = in_turn.advance().unwrap();
        assert_eq!(rows(in_turn), rows(of_several));
        assert_eq!(in_turn.process.uptime_ms, at / 1000);
    }
    assert!(in_turn.advance().is_none());
}

#[test]
fn all_allocations_up_to_a_moment_are_counted() {
    let history = history();
    let heap = history.heap_and_allocated(3500, &HeapOptions::default()).unwrap();
    let expected = [
        "0 in 0, 4096 in 1: shop::load < shop::main; main (1); -",
        "504 in 5, 504 in 5: shop::find < shop::work; worker (2); request > search",
        "64 in 1, 64 in 1: shop::find < shop::work; worker (2); request > search",
    ];
    assert_eq!(rows(&heap), expected);
    assert_eq!(heap.process.uptime_ms, 3);
    let sum = history.recording().sum(Which::Allocated).unwrap();
    assert_eq!((heap.totals().usable(), sum.bytes), (4664, 4664.0));
}

#[test]
fn stacks_are_of_functions_or_of_scopes() {
    let history = history();
    let heap = |stacks| {
        let options = HeapOptions { stacks, ..HeapOptions::default() };
        let heap = history.heap(2000, &options).unwrap();
        let stack = |row: &crate::heap::Row| {
            let frames = heap.stack(row.kind.stack).rev().map(|frame| &*frame.function);
            frames.collect::<Vec<_>>().join(";")
        };
        heap.rows.iter().map(stack).collect::<Vec<_>>()
    };
    assert_eq!(heap(StackKind::Native), ["shop::main;shop::load", "shop::work;shop::find"]);
    assert_eq!(heap(StackKind::Scopes), ["(in no scope)", "request;search"]);
    assert_eq!(
        heap(StackKind::ScopesThenNative),
        ["shop::main;shop::load", "request;search;shop::work;shop::find"]
    );
    let options =
        HeapOptions { only: Some(crate::analysis::Class::Unreported), ..HeapOptions::default() };
    assert!(history.heap(0, &options).is_err());
}
