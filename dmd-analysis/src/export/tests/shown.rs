//! Tests of the files of the example heap.

use std::collections::BTreeSet;

use serde_json::json;

use super::{heap, json, text};
use crate::analysis::Class;
use crate::export::{Format, Frames, Heap, HeapOptions};
use crate::heap::tests::HEAP;
use crate::read::read_slice;

#[test]
fn folded_stacks_are_sorted_and_a_name_is_one_frame() {
    let expected = "\
(no stack was recorded) 16
shop::main;<[u8: 4] as shop::\"Key\">::store 80
shop::main;???[/usr/lib/gone.so +0x1234] 24
shop::main;shop::Cache::insert;<String as Clone>::clone 1310720
shop::main;shop::load;<alloc::vec::Vec<u8>>::with_capacity 4096
shop::work;shop::Buffer::grow#1 3000000
";
    assert_eq!(text(Format::Folded, None), expected);
    let dark = "\
(no stack was recorded) 16
shop::main;???[/usr/lib/gone.so +0x1234] 24
shop::main;shop::load;<alloc::vec::Vec<u8>>::with_capacity 4096
";
    assert_eq!(text(Format::Folded, Some(Class::Unreported)), dark);
}

#[test]
fn own_frames_leave_the_library_out() {
    let dump = super::dump();
    let options = HeapOptions { frames: Frames::Own, ..HeapOptions::default() };
    let heap = Heap::new(&dump, &options).unwrap();
    let text = String::from_utf8(super::bytes(Format::Folded, &[heap])).unwrap();
    assert!(text.contains("shop::main;shop::load 4096\n"), "{text}");
    assert!(text.contains("shop::main;shop::Cache::insert 1310720\n"), "{text}");
}

#[test]
fn dhat_has_each_place_once_and_no_lifetimes() {
    let file = json(Format::Dhat, None);
    assert_eq!(file["dhatFileVersion"], 2);
    assert_eq!((&file["bklt"], &file["bkacc"]), (&json!(true), &json!(false)));
    assert_eq!(file["verb"], "Live, allocated");
    assert_eq!(
        (&file["cmd"], &file["pid"], &file["te"]),
        (&json!("/usr/bin/shop"), &json!(42), &json!(1_500_000))
    );
    // Rates are amounts per million units: of microseconds, per second.
    assert_eq!((&file["tu"], &file["Mtu"]), (&json!("µs"), &json!("s")));
    let frames = json!([
        "[root]",
        "0x0: shop::Buffer::grow#1 (src/buffer.rs:10)",
        "0x0: shop::work (src/main.rs:60)",
        "0x0: <String as Clone>::clone (/rustc/1/library/alloc/src/string.rs:99)",
        "0x0: shop::Cache::insert (src/cache.rs:33)",
        "0x0: shop::main (src/main.rs:40)",
        "0x0: <alloc::vec::Vec<u8>>::with_capacity (/rustc/1/library/alloc/src/vec/mod.rs:500)",
        "0x0: shop::load (src/main.rs:12)",
        "0x0: <[u8; 4] as shop::\"Key\">::store (src/key.rs:7)",
        "0x0: <[u8; 4] as shop::\"Key\">::store (src/key.rs:8)",
        "0x1234: ??? (in /usr/lib/gone.so)",
        "0x0: (no stack was recorded) (in ???)",
    ]);
    assert_eq!(file["ftbl"], frames);
    let point = json!({
        "tb": 3_000_000, "tbk": 3, "tl": 0, "mb": 3_000_000, "mbk": 3, "gb": 3_000_000, "gbk": 3,
        "eb": 3_000_000, "ebk": 3, "fs": [1, 2],
    });
    assert_eq!(file["pps"][0], point);
    assert_eq!(file["pps"].as_array().unwrap().len(), 7);
    for (only, verb) in [
        (Class::Unreported, "Unreported, allocated"),
        (Class::OnceReported, "Reported once, allocated"),
        (Class::TwiceReported, "Reported twice, allocated"),
    ] {
        assert_eq!(json(Format::Dhat, Some(only))["verb"], verb);
    }
}

#[test]
fn massif_has_requested_bytes_in_its_tree_and_slop_beside_it() {
    let expected = "\
desc: dmd, threshold 1%
cmd: /usr/bin/shop
time_unit: ms
#-----------
snapshot=0
#-----------
time=1500
mem_heap_B=4304110
mem_heap_extra_B=10826
mem_stacks_B=0
heap_tree=peak
n3: 4304110 (heap allocation functions) the program's allocator
 n1: 3000000 0x0: shop::Buffer::grow 1 (src/buffer.rs:10)
  n0: 3000000 0x0: shop::work (src/main.rs:60)
 n1: 1300000 0x0: <String as Clone>::clone (/rustc/1/library/alloc/src/string.rs:99)
  n1: 1300000 0x0: shop::Cache::insert (src/cache.rs:33)
   n0: 1300000 0x0: shop::main (src/main.rs:40)
 n0: 4110 in 5 places, all below massif's threshold (1.00%)
";
    assert_eq!(text(Format::Massif, None), expected);
    // Only the largest of several dumps is the peak.
    let dump = super::dump();
    let heaps = [Some(Class::Unreported), None, None].map(|only| heap(&dump, only));
    let several = String::from_utf8(super::bytes(Format::Massif, &heaps)).unwrap();
    let trees: Vec<&str> = several.lines().filter(|line| line.starts_with("heap_tree")).collect();
    assert_eq!(trees, ["heap_tree=detailed", "heap_tree=peak", "heap_tree=detailed"]);
}

#[test]
fn speedscope_has_a_profile_for_each_class() {
    let file = json(Format::Speedscope, None);
    let profiles = file["profiles"].as_array().unwrap();
    let shown: Vec<_> = profiles
        .iter()
        .map(|profile| (profile["name"].as_str().unwrap(), profile["endValue"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("live bytes", 4_314_936),
        ("unreported bytes", 4_136),
        ("once-reported bytes", 1_310_800),
        ("twice-reported bytes", 3_000_000),
    ];
    assert_eq!(shown, expected);
    let first = &profiles[0];
    let frame = |number: &serde_json::Value| {
        &file["shared"]["frames"][usize::try_from(number.as_u64().unwrap()).unwrap()]
    };
    let names: Vec<_> = first["samples"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|number| frame(number)["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["shop::work", "shop::Buffer::grow#1"]);
    assert_eq!(
        frame(&first["samples"][0][0]),
        &json!({"name": "shop::work", "file": "src/main.rs", "line": 60})
    );
}

#[test]
fn memory_infra_breaks_down_by_thread_stack_and_type() {
    let dump = super::dump();
    let heaps = [Some(Class::Unreported), None].map(|only| heap(&dump, only));
    let file: serde_json::Value =
        serde_json::from_slice(&super::bytes(Format::MemoryInfra, &heaps)).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    assert_eq!(events.len(), 3);
    let dumps = |at: usize| &events[at]["args"]["dumps"];
    let size = |at: usize, name: &str| &dumps(at)["allocators"][name]["attrs"]["size"]["value"];
    assert_eq!((size(1, "malloc"), size(2, "malloc")), (&json!("1028"), &json!("41d738")));
    assert_eq!((size(1, "unreported"), size(2, "unreported")), (&json!(null), &json!("1028")));
    let maps = |at: usize| &dumps(at)["heaps_v2"]["maps"];
    let nodes = json!([
        {"id": 1, "name_sid": 1},
        {"id": 2, "name_sid": 2, "parent": 1},
        {"id": 3, "name_sid": 3, "parent": 2},
        {"id": 4, "name_sid": 4, "parent": 3},
        {"id": 5, "name_sid": 6},
        {"id": 6, "name_sid": 2, "parent": 5},
        {"id": 7, "name_sid": 7, "parent": 6},
        {"id": 8, "name_sid": 9},
    ]);
    assert_eq!(maps(1)["nodes"], nodes);
    assert_eq!(maps(1)["strings"][0], json!({"id": 1, "string": "[Thread: main (1)]"}));
    assert_eq!(maps(1)["strings"][4], json!({"id": 5, "string": "[u8]"}));
    assert_eq!(maps(1)["types"], json!([{"id": 1, "name_sid": 5}, {"id": 2, "name_sid": 8}]));
    // The second dump adds new entries, with the next numbers.
    assert_eq!(maps(2)["nodes"][0]["id"], 9);
    let columns = &dumps(1)["heaps_v2"]["allocators"]["malloc"];
    let expected = json!({"nodes": [4, 7, 8], "types": [1, 2, 2], "counts": [1, 1, 1], "sizes": [4096, 24, 16]});
    assert_eq!(columns, &expected);
}

#[test]
fn memory_infra_has_requested_bytes_beside_usable_ones() {
    let file = json(Format::MemoryInfra, None);
    let dumps = &file["traceEvents"][1]["args"]["dumps"];
    let allocators = &dumps["allocators"];
    let attributes = |name: &str| &allocators[name]["attrs"];
    // Massif's tree has the same sum: 4,304,110 bytes, and 10,826 of slop.
    let size = |name: &str| &attributes(name)["size"]["value"];
    assert_eq!((size("requested"), size("malloc")), (&json!("41acee"), &json!("41d738")));
    assert_eq!(attributes("requested")["object_count"], attributes("malloc")["object_count"]);
    assert_ne!(allocators["requested"]["guid"], allocators["malloc"]["guid"]);
    let heap = |name: &str| &dumps["heaps_v2"]["allocators"][name];
    for column in ["nodes", "types", "counts"] {
        assert_eq!(heap("requested")[column], heap("malloc")[column], "{column}");
    }
    let requested: Vec<i64> = serde_json::from_value(heap("requested")["sizes"].clone()).unwrap();
    assert_eq!(requested.iter().sum::<i64>(), 4_304_110);
}

/// The allocators of the one memory dump of a trace, and the edges between them.
struct Allocators {
    dumps: serde_json::Map<String, serde_json::Value>,
    edges: serde_json::Value,
}

impl Allocators {
    fn of(file: &serde_json::Value) -> Self {
        let dumps = &file["traceEvents"][1]["args"]["dumps"];
        let edges = dumps["allocators_graph"].clone();
        Self { dumps: dumps["allocators"].as_object().unwrap().clone(), edges }
    }

    fn bytes(&self, name: &str) -> i64 {
        let size = self.dumps[name]["attrs"]["size"]["value"].as_str().unwrap();
        i64::from_str_radix(size, 16).unwrap()
    }

    /// Returns the sum of the allocators just below a node of the tree.
    fn below(&self, node: &str) -> i64 {
        let is_child = |name: &str| {
            let rest = name.strip_prefix(node).and_then(|rest| rest.strip_prefix('/'));
            rest.is_some_and(|rest| !rest.contains('/'))
        };
        self.dumps.keys().filter(|name| is_child(name)).map(|name| self.bytes(name)).sum()
    }
}

#[test]
fn memory_infra_has_each_block_once_in_the_tree_of_reports() {
    let all = Allocators::of(&json(Format::MemoryInfra, None));
    let reported = all.bytes("once-reported") + all.bytes("twice-reported");
    assert_eq!(all.bytes("explicit"), all.bytes("malloc"));
    assert_eq!(all.below("explicit"), all.bytes("explicit"));
    assert_eq!(all.bytes("explicit/heap-unclassified"), all.bytes("unreported"));
    assert_eq!(all.bytes("explicit") - all.bytes("explicit/heap-unclassified"), reported);
    // One class of blocks is no tree of the whole heap.
    let one = Allocators::of(&json(Format::MemoryInfra, Some(Class::Unreported)));
    assert!(!one.dumps.contains_key("explicit"));
}

#[test]
fn memory_infra_has_the_trackers_own_memory_apart_from_the_heap() {
    let with = HEAP.replace(r#""needs":[],"#, r#""needs":[],"trackerBytes":2097152,"#);
    let heaps = [heap(&read_slice(with.as_bytes()).unwrap(), None)];
    let file = serde_json::from_slice(&super::bytes(Format::MemoryInfra, &heaps)).unwrap();
    let all = Allocators::of(&file);
    assert_eq!(all.bytes("tracing"), 2_097_152);
    // It owns something, or the viewer would subtract it from `malloc`.
    assert_eq!(all.edges[0]["source"], all.dumps["tracing"]["guid"]);
    assert_eq!(all.edges[0]["target"], all.dumps["global/dmd-tables"]["guid"]);
    let numbers: BTreeSet<_> = all.dumps.values().map(|of| of["guid"].to_string()).collect();
    assert_eq!(numbers.len(), all.dumps.len());
}

#[test]
fn the_firefox_profiler_gets_a_thread_for_each_class_and_reporters_as_categories() {
    let file = json(Format::FirefoxProfiler, None);
    assert_eq!(file["meta"]["preprocessedProfileVersion"], 60);
    let categories: Vec<_> = file["meta"]["categories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|category| (category["name"].as_str().unwrap(), category["color"].as_str().unwrap()))
        .collect();
    let expected = [
        ("Other", "grey"),
        ("unreported", "red"),
        ("explicit/cache", "blue"),
        ("explicit/cache and explicit/pool", "green"),
    ];
    assert_eq!(categories, expected);
    let threads = file["threads"].as_array().unwrap();
    let names: Vec<_> = threads.iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Unreported", "Once-reported", "Twice-reported"]);
    assert_eq!(threads[0]["samples"]["weight"], json!([4096, 24, 16]));
    assert_eq!(threads[1]["samples"]["weight"], json!([1_310_720, 48, 32]));
    assert_eq!(threads[2]["samples"]["weight"], json!([3_000_000]));
    assert_eq!(threads[0]["pid"], "42");
    // The stack of a sample, from its innermost frame.
    let shared = &file["shared"];
    let at = |value: &serde_json::Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let mut stack = &threads[2]["samples"]["stack"][0];
    let mut functions = Vec::new();
    while !stack.is_null() {
        let frame = at(&shared["stackTable"]["frame"][at(stack)]);
        assert_eq!(shared["frameTable"]["category"][frame], 3);
        let function = at(&shared["frameTable"]["func"][frame]);
        functions.push(
            shared["stringArray"][at(&shared["funcTable"]["name"][function])].as_str().unwrap(),
        );
        stack = &shared["stackTable"]["prefix"][at(stack)];
    }
    assert_eq!(functions, ["shop::Buffer::grow#1", "shop::work"]);
}

#[test]
fn blocks_of_one_class_are_only_in_dumps_that_know_classes() {
    let live = read_slice(HEAP.replace("dark-matter", "live").as_bytes()).unwrap();
    let options = HeapOptions { only: Some(Class::Unreported), ..HeapOptions::default() };
    let error = Heap::new(&live, &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a dump of this mode does not say who reports what: take one with DMD=1"
    );
}

#[cfg(feature = "svg")]
#[test]
fn a_flame_graph_has_bytes_and_is_the_same_each_time() {
    let image = text(Format::Svg, None);
    assert!(
        image.contains("<title>shop::Cache::insert (1,310,720 bytes, 30.38%)</title>"),
        "{image}"
    );
    assert!(image.contains("shop: live bytes"));
    assert_eq!(image, text(Format::Svg, None));
    // An empty heap is a valid image.
    let live = read_slice(HEAP.as_bytes()).unwrap();
    let mut none = heap(&live, None);
    none.rows.clear();
    let image = String::from_utf8(super::bytes(Format::Svg, &[none])).unwrap();
    assert!(image.contains("live bytes, none"), "{image}");
}
