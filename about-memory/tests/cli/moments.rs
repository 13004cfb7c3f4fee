//! Tests commands that take recordings in place of dumps: exports, trees and growth, at any moment.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use super::folder::Folder;

/// A recording of two seconds: a block that stays, one that another thread frees, and one that is
/// allocated after that.
const RECORDING: &str = r#"{"recording":1,"program":"/usr/bin/shop","pid":42,"startedMs":0,"sampleBytes":null}
["thread",1,42,"main"]
["scope",0,"load"]
["site",1,1,["10"],1]
["site",2,1,["20"],0]
["=",0,0,0,0,0,4096]
["+",500000,1,4096,1000,1008]
["+",500000,2,8192,4000,4008]
["=",0,5016,2,0,0,8192]
["thread",2,43,"frees"]
["-",500000,8192,2]
["+",0,1,12288,16,24]
["=",500000,5040,3,4008,1,8192]
{"end":true,"events":4,"lost":0}
"#;

const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
"blockList":[{"req":4000,"slop":96,"alloc":"L"}],"traceTable":{"L":["l"]},"frameTable":{"l":"#00: shop::load (src/main.rs:12)"}}"##;

fn folder() -> Folder {
    Folder::new().with("shop.rec", RECORDING).with("dump.json", DUMP)
}

fn folded(at: &[&str]) -> Vec<String> {
    let folder = folder();
    let text = folder.text(&[&["export", "shop.rec", "--to", "folded"], at].concat());
    text.lines().map(|line| line.replace("???[??? +0x", "[")).collect()
}

#[test]
fn a_format_of_one_heap_gets_that_of_the_moment() {
    assert_eq!(folded(&[]), ["[10] 1032"]);
    assert_eq!(folded(&["--at", "end"]), ["[10] 1032"]);
    assert_eq!(folded(&["--at", "peak"]), ["[10] 1008", "[20] 4008"]);
    assert_eq!(folded(&["--at", "1.2s"]), ["[10] 1008", "[20] 4008"]);
    assert_eq!(folded(&["--at", "500ms"]), ["[10] 1008"]);
    assert_eq!(folded(&["--at", "0"]), [""; 0]);
    assert_eq!(
        folded(&["--at", "peak", "--stacks", "scopes"]),
        ["(in no scope) 4008", "load 1008"]
    );
    let below = folded(&["--stacks", "scopes-then-native"]);
    assert_eq!(below, ["load;[10] 1032"]);
}

#[test]
fn formats_with_time_get_the_whole_course() {
    let folder = folder();
    let profile = folder.json(&["export", "shop.rec", "--to", "firefox-profiler"]);
    let blocks = &profile["threads"][0]["nativeAllocations"];
    assert_eq!(blocks["weight"], json!([1008, 4008, 24, -4008]));
    let at = folder.json(&["export", "shop.rec", "--to", "firefox-profiler", "--at", "peak"]);
    assert_eq!(at["threads"][1]["samples"]["weight"], json!([4008, 1008]));
    let two = folder.json(&["export", "shop.rec", "shop.rec", "--to", "firefox-profiler"]);
    assert_eq!(two["counters"].as_array().unwrap().len(), 2);
    let massif = folder.text(&["export", "shop.rec", "--to", "massif"]);
    assert_eq!(massif.matches("heap_tree=peak").count(), 1);
    assert_eq!(massif.matches("snapshot=").count(), 61);
    let moments = ["export", "shop.rec", "--to", "massif", "--at", "0.6", "--at", "peak"];
    assert_eq!(folder.text(&moments).matches("snapshot=").count(), 2);
    let moments = ["export", "shop.rec", "--to", "memory-infra", "--at", "1", "--at", "2s"];
    let trace = folder.json(&moments);
    assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 3);
    let dhat = folder.json(&["export", "shop.rec", "--to", "dhat"]);
    assert_eq!((&dhat["te"], &dhat["tg"]), (&2_000_000.into(), &1_000_000.into()));
    // One block of 1.5 s and one of half a second.
    assert_eq!((&dhat["pps"][0]["tb"], &dhat["pps"][0]["tl"]), (&1032.into(), &2_000_000.into()));
}

#[test]
fn details_and_growth_are_of_moments() {
    let folder = folder();
    let heap = folder.json(&["heap", "shop.rec", "--json", "--at", "peak"]);
    assert_eq!(heap["bytes"], 5016);
    assert_eq!(folder.json(&["heap", "shop.rec", "--json"])["bytes"], 1032);
    let diff = |words: &[&str]| {
        let growth = folder.json(&[&["heap-diff"], words, &["--json"]].concat());
        (growth["before"]["bytes"].as_i64().unwrap(), growth["after"]["bytes"].as_i64().unwrap())
    };
    assert_eq!(diff(&["shop.rec"]), (0, 1032));
    assert_eq!(diff(&["shop.rec", "--from", "peak"]), (5016, 1032));
    assert_eq!(diff(&["shop.rec", "--from", "0.5", "--to", "1"]), (1008, 5016));
    assert_eq!(diff(&["shop.rec", "shop.rec", "--from", "0.5"]), (1008, 1032));
    assert_eq!(diff(&["dump.json", "shop.rec", "--to", "peak"]), (4096, 5016));
}

#[test]
fn a_recording_is_known_by_its_text_also_in_a_pipe() {
    let folder = folder();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(RECORDING.as_bytes()).unwrap();
    for text in [RECORDING.as_bytes().to_vec(), packed.finish().unwrap()] {
        let mut command = folder.command();
        command.args(["export", "-", "--to", "folded"]).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&text).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "???[??? +0x10] 1032\n");
    }
}

#[test]
fn what_a_recording_comes_to_is_said_in_bytes() {
    let folder = folder();
    let sums = folder.json(&["recording", "shop.rec", "--json"]);
    let bytes = |which: &str| sums[which]["bytes"].as_i64().unwrap();
    assert_eq!(["allocated", "atPeak", "retained", "temporary"].map(bytes), [5040, 5016, 1032, 0]);
    assert_eq!(sums["peak"], json!({"time": 1_000_000, "live": 5016, "isExact": false}));
    let lifetimes = json!([
        {"from": 100_000, "to": 1_000_000, "sum": {"bytes": 4008, "blocks": 1.0, "error": 0.0}},
        {"from": 0, "to": null, "sum": {"bytes": 1032, "blocks": 2.0, "error": 0.0}},
    ]);
    assert_eq!(sums["lifetimes"], lifetimes);
}

#[test]
fn what_is_not_to_be_had_is_refused_with_the_remedy() {
    let folder = folder();
    let table: [(&[&str], &str); 7] = [
        (
            &["export", "shop.rec", "--to", "folded", "--at", "1min"],
            "about-memory: shop.rec: the recording ends after 2.000 s; `end` is that moment",
        ),
        (
            &["export", "dump.json", "--to", "folded", "--at", "end"],
            "about-memory: dump.json: a dump is of one moment: only recordings have others",
        ),
        (
            &["export", "shop.rec", "--to", "pprof", "-o", "out", "--at", "1", "--at", "2"],
            "about-memory: this format has room for one heap: export them one by one, or --to memory-infra or massif",
        ),
        (
            &["export", "shop.rec", "dump.json", "--to", "firefox-profiler"],
            "about-memory: this format has room for one heap: export them one by one, or --to memory-infra or massif",
        ),
        (
            &["export", "shop.rec", "--to", "folded", "--only", "once"],
            "about-memory: shop.rec: a recording does not know who reports what: take a dump with DMD=1",
        ),
        (
            &["heap-diff", "dump.json"],
            "about-memory: dump.json: a dump alone can be compared with nothing: name a second one, or a recording",
        ),
        (
            &["heap", "shop.rec", "--at", "noon"],
            "error: invalid value 'noon' for '--at <MOMENT>': a moment is `peak`, `end`, or seconds since the beginning",
        ),
    ];
    for (args, expected) in table {
        let output = folder.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.lines().any(|line| line.starts_with(expected)), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_damaged_recording_is_named_with_the_cause_and_the_remedy() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(RECORDING.as_bytes()).unwrap();
    let mut damaged = packed.finish().unwrap();
    // The length of the first piece no longer fits its complement.
    damaged[11] ^= 0xff;
    let folder = Folder::new().with("shop.gz", damaged);
    for command in [&["recording", "shop.gz"][..], &["heap", "tree", "shop.gz"]] {
        let output = folder.run(command);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("about-memory: shop.gz: damaged gzip data ("), "{said}");
        assert!(said.contains("copy it again"), "{said}");
    }
}
