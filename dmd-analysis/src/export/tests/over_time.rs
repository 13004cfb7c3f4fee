//! Tests of the files of the example recording.

use serde_json::{Value, json};

use super::decoded::Decoded;
use crate::export::{Format, HeapOptions, History, StackKind, write_histories, write_moment};
use crate::heap::history::HistoryError;
use crate::heap::history::tests::{history, history_with_free_stacks};

fn whole(format: Format, histories: &[History]) -> Vec<u8> {
    let mut out = Vec::new();
    write_histories(format, histories, &HeapOptions::default(), &mut out).unwrap();
    out
}

fn moment(format: Format, at: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write_moment(format, &history(), at, &HeapOptions::default(), &mut out).unwrap();
    out
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

/// Returns the functions of a stack of the profile, the outermost first.
fn functions(shared: &Value, stack: &Value) -> Vec<String> {
    let number = |value: &Value| value.as_u64().map(|number| usize::try_from(number).unwrap());
    let mut names = Vec::new();
    let mut next = number(stack);
    while let Some(stack) = next {
        let frame = number(&shared["stackTable"]["frame"][stack]).unwrap();
        let function = number(&shared["frameTable"]["func"][frame]).unwrap();
        let name = number(&shared["funcTable"]["name"][function]).unwrap();
        names.insert(0, shared["stringArray"][name].as_str().unwrap().to_owned());
        next = number(&shared["stackTable"]["prefix"][stack]);
    }
    names
}

#[test]
fn the_firefox_profiler_gets_allocations_and_frees_for_the_process_and_each_thread() {
    let file = json(&whole(Format::FirefoxProfiler, &[history()]));
    let threads = file["threads"].as_array().unwrap();
    let shown = |key: &str| threads.iter().map(|thread| thread[key].clone()).collect::<Vec<_>>();
    assert_eq!(shown("name"), ["shop, all threads", "main (1)", "worker (2)"]);
    assert_eq!(shown("tid"), [json!("42 all"), json!(42), json!(43)]);
    assert_eq!(shown("isMainThread"), [true, false, false]);
    let all = &threads[0]["nativeAllocations"];
    let expected = json!({
        "time": [1.0, 2.0, 3.0, 3.0, 5.0],
        "weight": [4096, 504, 64, -4096, -504],
        "weightType": "bytes",
        "stack": all["stack"],
        "memoryAddress": [1, 2, 3, 1, 2],
        "threadId": [1, 2, 2, 2, 2],
        "length": 5,
    });
    assert_eq!(all, &expected);
    let stacks = all["stack"].as_array().unwrap().iter();
    let stacks: Vec<_> = stacks.map(|stack| functions(&file["shared"], stack).join(";")).collect();
    let expected = [
        "shop::main;shop::load",
        "shop::work;shop::find",
        "shop::work;shop::find",
        "(freed by worker (2))",
        "(freed by worker (2))",
    ];
    assert_eq!(stacks, expected);
    // A thread has the frees of its blocks, even of those that another thread freed.
    assert_eq!(threads[1]["nativeAllocations"]["weight"], json!([4096, -4096]));
    assert_eq!(threads[2]["nativeAllocations"]["weight"], json!([504, 64, -504]));
}

#[test]
fn the_firefox_profiler_gets_the_stacks_of_frees() {
    let file = json(&whole(Format::FirefoxProfiler, &[history_with_free_stacks()]));
    let all = &file["threads"][0]["nativeAllocations"];
    let frees = all["stack"].as_array().unwrap()[3..].iter();
    let frees: Vec<_> = frees.map(|stack| functions(&file["shared"], stack).join(";")).collect();
    // The second free has none.
    assert_eq!(frees, ["shop::work;shop::find", "(freed by worker (2))"]);
}

#[test]
fn the_firefox_profiler_gets_the_sums_and_the_marks() {
    let file = json(&whole(Format::FirefoxProfiler, &[history()]));
    let samples = json!({
        "time": [0.0, 0.0, 2.0, 4.0, 10.0],
        // The profiler ignores the first sample. The others are the live bytes and the changes.
        "count": [0, 1000, 11_000, -4000, -900],
        "number": [0, 1, 5, 2, 4],
        "length": 5,
    });
    assert_eq!(file["counters"][0]["samples"], samples);
    assert_eq!(file["counters"][0]["category"], "Memory");
    let markers = &file["threads"][0]["markers"];
    let names = markers["name"].as_array().unwrap().iter();
    let strings = &file["shared"]["stringArray"];
    let names: Vec<_> =
        names.map(|name| &strings[usize::try_from(name.as_u64().unwrap()).unwrap()]).collect();
    assert_eq!(names, ["Recording", "Peak", "Mark", "Memory report"]);
    assert_eq!(markers["startTime"], json!([0.0, 2.0, 2.5, 2.5]));
    assert_eq!(markers["endTime"], json!([10.0, null, null, null]));
    assert_eq!(markers["data"][1], json!({"type": "HeapPeak", "live": 12_000}));
    assert_eq!(markers["data"][3]["words"], "report: at exit");
}

#[test]
fn the_firefox_profiler_gets_the_exact_peak_between_two_sums() {
    let lines = r#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null,"everyBlock":true}
["thread",1,7,"p"]
["=",1,100,1,0,0,0]
["+",2,1,16,50,64]
["-",0,16,1]
["=",4,164,2,64,1,0]
{"end":true,"events":2,"lost":0,"whole":true}
"#;
    let history = History::new(crate::recording::read(lines.as_bytes()).unwrap()).unwrap();
    let file = json(&whole(Format::FirefoxProfiler, &[history]));
    let samples = &file["counters"][0]["samples"];
    assert_eq!(samples["time"], json!([0.0, 0.001, 0.003, 0.007]));
    assert_eq!(samples["count"], json!([0, 100, 64, -64]));
    assert_eq!(samples["number"], json!([0, 1, 0, 2]));
}

#[test]
fn a_thread_without_blocks_has_no_table_of_them() {
    let lines = r#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null}
["thread",1,7,"p"]
["=",5,1,1,0,0,1]
"#;
    let empty = History::new(crate::recording::read(lines.as_bytes()).unwrap()).unwrap();
    let file = json(&whole(Format::FirefoxProfiler, &[empty]));
    assert_eq!(file["threads"].as_array().unwrap().len(), 2);
    assert!(
        file["threads"]
            .as_array()
            .unwrap()
            .iter()
            .all(|thread| thread.get("nativeAllocations").is_none())
    );
    assert_eq!(file["threads"][0]["samples"]["length"], 0);
}

#[test]
fn processes_are_side_by_side_at_their_own_times() {
    let lines = r#"{"recording":1,"program":"/bin/other","pid":43,"startedMs":1700000000250,"sampleBytes":null}
["thread",1,43,"other"]
["site",1,1,["10"],0]
["+",1000,1,64,10,24]
"#;
    let later = History::new(crate::recording::read(lines.as_bytes()).unwrap()).unwrap();
    let file = json(&whole(Format::FirefoxProfiler, &[later, history()]));
    assert_eq!(file["meta"]["startTime"], 1_700_000_000_000_u64);
    assert_eq!(file["meta"]["product"], "other, shop (heap over time)");
    let allocations =
        |thread: usize| file["threads"][thread]["nativeAllocations"]["time"][0].clone();
    assert_eq!((allocations(0), allocations(2)), (json!(251.0), json!(1.0)));
    let pids: Vec<_> =
        file["threads"].as_array().unwrap().iter().map(|thread| &thread["pid"]).collect();
    assert_eq!(pids, ["43", "43", "42", "42", "42"]);
    assert_eq!(file["counters"][1]["mainThreadIndex"], 2);
}

#[test]
fn dhat_has_lifetimes_the_peak_and_the_end() {
    let file = json(&whole(Format::Dhat, &[history()]));
    assert_eq!(
        (&file["te"], &file["tg"], &file["tu"]),
        (&json!(10_000), &json!(2000), &json!("µs"))
    );
    let find = json!({
        // 4.5 blocks that lived 3 ms, and one of 7 ms.
        "tb": 568, "tbk": 6, "tl": 20_500, "mb": 568, "mbk": 6, "gb": 504, "gbk": 5,
        "eb": 64, "ebk": 1, "fs": [4, 5],
    });
    let load = json!({
        "tb": 4096, "tbk": 1, "tl": 2000, "mb": 4096, "mbk": 1, "gb": 4096, "gbk": 1,
        "eb": 0, "ebk": 0, "fs": [2, 3],
    });
    assert_eq!(file["pps"], json!([load, find]));
    // Up to a moment: live blocks have a lifetime up to it, and later blocks are missing.
    let early = json(&moment(Format::Dhat, 2500));
    assert_eq!((&early["te"], &early["tg"]), (&json!(2500), &json!(2000)));
    assert_eq!((&early["pps"][0]["tl"], &early["pps"][0]["eb"]), (&json!(1500), &json!(4096)));
    assert_eq!((&early["pps"][1]["tb"], &early["pps"][1]["tl"]), (&json!(504), &json!(2250)));
}

#[test]
fn massif_has_the_course_with_the_peak_marked() {
    let text = String::from_utf8(whole(Format::Massif, &[history()])).unwrap();
    let field = |name: &str| -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
    };
    // At even distances, of which one happens to be at the peak.
    assert_eq!(field("snapshot").len(), 61);
    let trees = field("heap_tree");
    assert_eq!(trees.iter().filter(|tree| **tree == "peak").count(), 1);
    assert_eq!(trees.iter().filter(|tree| **tree == "detailed").count(), 6);
    let peak = trees.iter().position(|tree| *tree == "peak").unwrap();
    let total = |at: usize| {
        let number = |name: &str| field(name)[at].parse::<u64>().unwrap();
        number("mem_heap_B") + number("mem_heap_extra_B")
    };
    assert_eq!((field("time")[peak], total(peak)), ("2", 4600));
    assert_eq!((field("time")[60], total(60)), ("10", 64));
    assert!(text.contains("n1: 4000 0x0: shop::load (src/main.rs:12)"), "{text}");
}

#[test]
fn formats_without_time_show_the_heap_of_a_moment() {
    let folded = |at| String::from_utf8(moment(Format::Folded, at)).unwrap();
    assert_eq!(folded(2000), "shop::main;shop::load 4096\nshop::work;shop::find 504\n");
    assert_eq!(folded(10_000), "shop::work;shop::find 64\n");
    let pprof = Decoded::new(&moment(Format::Pprof, 3500));
    assert_eq!(pprof.sums(), [7, 4664, 6, 568]);
    assert_eq!(json(&moment(Format::Speedscope, 2000))["profiles"][0]["endValue"], 4600);
    let infra = json(&moment(Format::MemoryInfra, 2000));
    let sizes =
        &infra["traceEvents"][1]["args"]["dumps"]["heaps_v2"]["allocators"]["malloc"]["sizes"];
    assert_eq!(sizes, &json!([4096, 504]));
    let profiler = json(&moment(Format::FirefoxProfiler, 10_000));
    let weights: Vec<_> =
        (0..2).map(|thread| profiler["threads"][thread]["samples"]["weight"].clone()).collect();
    assert_eq!(weights, [json!([4096, 568]), json!([64])]);
}

#[test]
fn scopes_are_labels_or_pseudo_stacks() {
    let pprof = Decoded::new(&moment(Format::Pprof, 2000));
    let expected = [
        "shop::load src/main.rs:12 | shop::main src/main.rs:40 [thread=main (1) bytes=4096bytes] [1, 4096, 1, 4096]",
        "shop::find src/find.rs:7 | shop::work :0 [thread=worker (2) scope=request > search bytes=112bytes] [5, 504, 5, 504]",
    ];
    assert_eq!(pprof.samples(), expected);
    let options = HeapOptions { stacks: StackKind::Scopes, ..HeapOptions::default() };
    let mut out = Vec::new();
    write_moment(Format::MemoryInfra, &history(), 2000, &options, &mut out).unwrap();
    let dumps = &json(&out)["traceEvents"][1]["args"]["dumps"]["heaps_v2"];
    // Like Chrome's trace events: below the thread, the outermost scope first.
    let nodes = json!([
        {"id": 1, "name_sid": 1}, {"id": 2, "name_sid": 2, "parent": 1},
        {"id": 3, "name_sid": 4}, {"id": 4, "name_sid": 5, "parent": 3},
        {"id": 5, "name_sid": 6, "parent": 4},
    ]);
    assert_eq!(dumps["maps"]["nodes"], nodes);
    let strings = dumps["maps"]["strings"].as_array().unwrap().iter();
    let strings: Vec<_> = strings.map(|string| &string["string"]).collect();
    let expected = [
        "[Thread: main (1)]",
        "(in no scope)",
        "[unknown]",
        "[Thread: worker (2)]",
        "request",
        "search",
    ];
    assert_eq!(strings, expected);
    let mut out = Vec::new();
    write_histories(Format::FirefoxProfiler, &[history()], &options, &mut out).unwrap();
    let file = json(&out);
    let allocation = &file["threads"][2]["nativeAllocations"]["stack"][0];
    assert_eq!(functions(&file["shared"], allocation), ["request", "search"]);
}

#[test]
fn the_firefox_profiler_gets_cycles_as_intervals_with_their_slices() {
    let lines = r#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null}
["thread",1,7,"p"]
["!",9000,"gc: 2 slices, 3.000 ms",{"reason":"gc","nonincrementalReason":"requested","slicesUs":[[8000,7000],[3000,1000]]}]
"#;
    let history = History::new(crate::recording::read(lines.as_bytes()).unwrap()).unwrap();
    let file = json(&whole(Format::FirefoxProfiler, &[history]));
    let markers = &file["threads"][0]["markers"];
    assert_eq!(markers["startTime"], json!([0.0, 1.0, 1.0, 6.0]));
    assert_eq!(markers["endTime"], json!([9.0, 8.0, 2.0, 8.0]));
    assert_eq!(markers["phase"], json!([1, 1, 1, 1]));
    let slice = json!({"type": "MemorySlice", "reason": "gc"});
    let cycle =
        json!({"type": "MemoryCycle", "reason": "gc", "slices": 2, "nonincremental": "requested"});
    assert_eq!(markers["data"].as_array().unwrap()[1..], [cycle, slice.clone(), slice]);
    let schemas = file["meta"]["markerSchema"].as_array().unwrap();
    for kind in ["MemoryCycle", "MemorySlice"] {
        assert!(schemas.iter().any(|schema| schema["name"] == kind), "{kind}");
    }
}

#[test]
fn the_firefox_profiler_gets_allocations_with_their_types() {
    let file = json(&whole(Format::FirefoxProfiler, &[history()]));
    let allocations = &file["threads"][0]["jsAllocations"];
    let blocks = &file["threads"][0]["nativeAllocations"];
    assert_eq!(allocations["className"], json!(["(unknown)", "(unknown)", "(unknown)"]));
    assert_eq!(allocations["weight"], json!([4096, 504, 64]));
    assert_eq!(allocations["length"], 3);
    for at in 0..3 {
        assert_eq!(allocations["stack"][at], blocks["stack"][at]);
    }
    assert_eq!(file["threads"][1].get("jsAllocations"), None);
}

#[test]
fn dhat_has_the_maximum_of_blocks_that_replace_each_other_within_a_microsecond() {
    let lines = r#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null}
["site",1,1,["10"],0]
["+",1,1,16,100,100]
["-",0,16,1]
["+",0,1,32,60,60]
["-",0,32,1]
{"end":true,"events":4,"lost":0}
"#;
    let history = History::new(crate::recording::read(lines.as_bytes()).unwrap()).unwrap();
    let place = &json(&whole(Format::Dhat, &[history]))["pps"][0];
    assert_eq!((&place["mb"], &place["mbk"]), (&json!(100), &json!(1)));
}

#[test]
fn a_recording_that_cannot_be_read_again_is_no_failure_to_write() {
    let lines = r#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null}
["+",1,1,16,100,100]
"#;
    let path = std::env::temp_dir().join(format!("exported-{}", std::process::id()));
    std::fs::write(&path, lines).unwrap();
    let open = || std::fs::File::open(&path).unwrap();
    let recording = crate::recording::read_with_file(open(), open()).unwrap();
    let histories = [History::new(recording).unwrap()];
    std::fs::write(&path, "").unwrap();
    for format in Format::ALL {
        let options = HeapOptions::default();
        let written = write_histories(*format, &histories, &options, &mut Vec::new());
        let error = written.unwrap_err().downcast::<HistoryError>();
        assert!(matches!(error, Ok(HistoryError::Recording(_))), "{format:?}: {error:?}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_recording_may_be_of_any_time() {
    let recording = |started: u64| {
        let lines = format!(
            "{{\"recording\":1,\"pid\":7,\"startedMs\":{started}}}\n[\"+\",1,1,16,100,100]\n"
        );
        History::new(crate::recording::read(lines.as_bytes()).unwrap()).unwrap()
    };
    let file = json(&whole(Format::FirefoxProfiler, &[recording(0), recording(u64::MAX)]));
    assert_eq!(file["threads"].as_array().unwrap().len(), 2);
}
