//! Tests that the timeline of a recorded leak, and the comparison of two moments, show its size and
//! its source line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use about_memory::{Cli, Context};
use clap::Parser;
use memreport_analysis::recording;
use memreport_analysis::recording::{Recording, Which};
use serde_json::Value;

/// The leaked bytes: glibc adds 8 to the 10,000 of each request.
const FORGOTTEN: i64 = 1000 * 10_008;

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Records every block of the program, in a second instead of a minute.
fn recorded(name: &str) -> (Folder, PathBuf, Recording) {
    let folder =
        std::env::temp_dir().join(format!("memreport-timeline-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let folder = Folder(folder);
    let file = folder.0.join("leak.rec");
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaking"));
    command.arg("1").env("DMD", "--mode=live");
    command.env(dmd::record::VARIABLE, folder.0.join("%p"));
    let mut child = command.spawn().expect("it starts");
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    std::fs::rename(folder.0.join(child.id().to_string()), &file).expect("it recorded");
    let recording = recording::read(std::fs::File::open(&file).expect("it recorded"));
    let recording = recording.expect("a recording");
    assert!(recording.is_whole);
    (folder, file, recording)
}

/// Returns the output of `about-memory`.
fn answer(words: &[&str]) -> Vec<u8> {
    let cli = Cli::try_parse_from([&["about-memory"], words].concat()).expect("good words");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = cli.run(&mut Context::new(&mut out, &mut err));
    done.unwrap_or_else(|error| panic!("{error}"));
    out
}

fn json(words: &[&str]) -> Value {
    serde_json::from_slice(&answer(words)).expect("JSON")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

/// Returns the line of the program that leaks.
fn line() -> String {
    let source = include_str!("../src/bin/leaking.rs");
    let number = source.lines().position(|line| line.ends_with("// the leak")).expect("a line");
    format!("src/bin/leaking.rs:{}", number + 1)
}

/// Returns the time of the program's mark, in seconds.
fn moment(recording: &Recording, words: &str) -> f64 {
    let mark = recording.marks.iter().find(|mark| mark.text == *words).expect("a mark");
    f64::from(u32::try_from(mark.time).expect("not that long")) / 1e6
}

#[test]
fn what_grew_between_two_moments_is_the_leak_at_its_line() {
    let (_folder, file, recording) = recorded("grown");
    let file = text(&file);
    let first = |growth: &Value| {
        let place = &growth["places"][0];
        let (function, line) = (place["stack"][0].as_str(), place["lines"][0].as_str());
        let words = [function.unwrap_or_default(), line.unwrap_or_default()].map(str::to_owned);
        (words, place["bytes"].as_i64().expect("bytes"))
    };
    let (begin, end) = (moment(&recording, "it begins"), moment(&recording, "all is forgotten"));
    let from = format!("{begin}s");
    let ([function, place], bytes) = first(&json(&["heap-diff", file, "--from", &from, "--json"]));
    assert_eq!((function.as_str(), bytes), ("leaking::forgets", FORGOTTEN));
    assert!(place.ends_with(&line()), "{place} is not {}", line());
    // Half of the time, half of the leak; the program goes by the clock.
    let [from, to] = [0.25, 0.75].map(|share| format!("{:.6}", begin + share * (end - begin)));
    let words = ["heap-diff", file, "--from", &from, "--to", &to, "--json"];
    let ([function, _], bytes) = first(&json(&words));
    assert_eq!(function, "leaking::forgets");
    assert!((bytes - FORGOTTEN / 2).abs() < FORGOTTEN / 5, "{bytes}");
    let shown = String::from_utf8(answer(&["heap-diff", file])).expect("text");
    assert!(shown.contains("+10,008,000 bytes in +1,000 blocks (from 0 to 10,008,000)"), "{shown}");
    assert!(shown.contains(&format!("({})", line())), "{shown}");
    // The first site is the one in the guide.
    let place = shown.split("\n\n").nth(1).expect("a place");
    assert!(
        include_str!("../../docs/guide/src/recordings.md").contains(place),
        "the guide has other lines than {place}"
    );
}

/// Returns the bytes in a thread's table by function, with the profiler's rule that a free cancels
/// the row of its allocation.
fn retained(profile: &Value, thread: &Value) -> HashMap<String, i64> {
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let table = &thread["nativeAllocations"];
    let mut live = HashMap::new();
    for row in 0..number(&table["length"]).expect("a table") {
        let weight = table["weight"][row].as_i64().expect("bytes");
        if weight >= 0 {
            live.insert(&table["memoryAddress"][row], (weight, &table["stack"][row]));
        } else {
            let born = live.remove(&table["memoryAddress"][row]).expect("a birth before its end");
            assert_eq!(born.0, -weight);
        }
    }
    let shared = &profile["shared"];
    let mut sums = HashMap::new();
    for (weight, stack) in live.into_values() {
        let mut next = number(stack);
        while let Some(stack) = next {
            let frame = number(&shared["stackTable"]["frame"][stack]).expect("a frame");
            let function = number(&shared["frameTable"]["func"][frame]).expect("a function");
            let name = number(&shared["funcTable"]["name"][function]).expect("a name");
            let name = shared["stringArray"][name].as_str().expect("a string");
            *sums.entry(name.to_owned()).or_insert(0) += weight;
            next = number(&shared["stackTable"]["prefix"][stack]);
        }
    }
    sums
}

#[test]
fn the_timeline_retains_the_leak_and_nothing_that_another_thread_gave_back() {
    let (_folder, file, recording) = recorded("retained");
    let profile = json(&["export", text(&file), "--to", "firefox-profiler"]);
    let threads = profile["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), recording.threads.len() + 1);
    // All threads together, and the main one, which allocates.
    for thread in &threads[..2] {
        let retained = retained(&profile, thread);
        assert_eq!(retained.get("leaking::forgets"), Some(&FORGOTTEN), "{retained:?}");
        assert_eq!(retained.get("leaking::hands_over"), None);
    }
    // The table with types has every block.
    let typed = &threads[0]["jsAllocations"];
    assert_eq!(typed["length"], recording.block_count);
    let types = typed["className"].as_array().expect("a column");
    let leaked = types.iter().zip(typed["weight"].as_array().expect("a column"));
    let leaked = leaked.filter(|(name, weight)| **name == "[u8]" && **weight == FORGOTTEN / 1000);
    assert_eq!(leaked.count(), 1000);
    let blocks = recording.blocks(Which::Freed).expect("our own");
    let elsewhere = blocks.iter().filter(|block| {
        let born = recording.sites[&block.site].thread;
        block.freed.is_some_and(|freed| freed.thread != born)
    });
    assert!(elsewhere.count() >= 20_000);
    let sum: i64 = profile["counters"][0]["samples"]["count"]
        .as_array()
        .expect("a column")
        .iter()
        .filter_map(Value::as_i64)
        .sum();
    let (_, last) = recording.ends().expect("there are sums");
    assert_eq!(u64::try_from(sum), Ok(last.live_bytes()));
}
