//! Tests that the totals of every format are the dump's, in every mode, to the byte.

use std::collections::BTreeMap;

use serde_json::Value;

use super::bytes;
use super::decoded::Decoded;
use crate::analysis::{ExplainOptions, explain};
use crate::export::{Format, Heap, HeapOptions};
use crate::heap::tests::{BYTES, HEAP};
use crate::read::read_slice;

/// Adds up the bytes of a file from its smallest parts.
fn total(format: Format, file: &[u8]) -> i128 {
    let text = String::from_utf8_lossy(file);
    let json = || serde_json::from_str::<Value>(&text).unwrap();
    let sum = |values: &Value| {
        let values = values.as_array().unwrap().iter();
        values.map(|value| i128::from(value.as_i64().unwrap())).sum::<i128>()
    };
    match format {
        Format::Pprof => {
            let profile = Decoded::new(file);
            // Allocated bytes if there are any, else live ones: the second value in both cases.
            i128::from(profile.sums()[1])
        }
        Format::Dhat => {
            let points = json()["pps"].as_array().unwrap().clone();
            points.iter().map(|point| i128::from(point["tb"].as_i64().unwrap())).sum()
        }
        Format::Folded => {
            text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i128>().unwrap()).sum()
        }
        Format::Speedscope => sum(&json()["profiles"][0]["weights"]),
        Format::Massif => {
            let fields: BTreeMap<&str, &str> =
                text.lines().filter_map(|line| line.split_once('=')).collect();
            let number = |field: &str| fields[field].parse::<i128>().unwrap();
            assert_eq!(leaves(&text), number("mem_heap_B"), "{text}");
            number("mem_heap_B") + number("mem_heap_extra_B")
        }
        Format::MemoryInfra => {
            let event = &json()["traceEvents"][1]["args"]["dumps"];
            let sizes = sum(&event["heaps_v2"]["allocators"]["malloc"]["sizes"]);
            let size = &event["allocators"]["malloc"]["attrs"]["size"]["value"];
            assert_eq!(size.as_str().unwrap(), format!("{sizes:x}"));
            sizes
        }
        Format::FirefoxProfiler => {
            let file = json();
            let threads = file["threads"].as_array().unwrap().iter();
            // The live part of all allocations is a thread of its own.
            let is_part = |thread: &&Value| thread["name"] == "Allocated";
            match threads.clone().find(is_part) {
                Some(all) => sum(&all["samples"]["weight"]),
                None => threads.map(|thread| sum(&thread["samples"]["weight"])).sum(),
            }
        }
        #[cfg(feature = "svg")]
        Format::Svg => {
            let all = text.split("<title>all (").nth(1).unwrap().split(" bytes").next().unwrap();
            all.replace(',', "").parse().unwrap()
        }
    }
}

/// Adds up the bytes of the leaves of a massif tree.
fn leaves(text: &str) -> i128 {
    let leaves = text.lines().filter_map(|line| line.trim_start().strip_prefix("n0: "));
    leaves.map(|leaf| leaf.split(' ').next().unwrap().parse::<i128>().unwrap()).sum()
}

fn assert_totals(name: &str, text: &str, expected: i128) {
    let dump = read_slice(text.as_bytes()).unwrap();
    assert_eq!(explain(&dump, &ExplainOptions::default()).heap.usable(), expected, "{name}");
    let heap = Heap::new(&dump, &HeapOptions::default()).unwrap();
    assert_eq!(heap.totals().usable(), expected, "{name}");
    let heaps = [heap];
    for &format in Format::ALL {
        let file = bytes(format, &heaps);
        assert_eq!(total(format, &file), expected, "{name} as {format:?}");
        assert_eq!(file, bytes(format, &heaps), "{name} as {format:?} is the same each time");
    }
}

#[test]
fn every_format_has_the_dump_s_bytes_in_every_mode() {
    let in_mode =
        |mode: &str| HEAP.replace("\"mode\":\"dark-matter\"", &format!("\"mode\":\"{mode}\""));
    let of_firefox = |text: &str| {
        let (before, rest) = text.split_once("\"memreport\"").unwrap();
        let (_, after) = rest.split_once("\"traceTable\"").unwrap();
        format!("{before}\"traceTable\"{after}")
    };
    for mode in ["live", "dark-matter", "scan"] {
        // In Mozilla's format, a scan contains no reports.
        let text = if mode == "scan" {
            in_mode(mode).replace("reps", "reportedBy")
        } else {
            in_mode(mode)
        };
        assert_totals(mode, &text, BYTES);
        assert_totals(&format!("{mode} of Firefox"), &of_firefox(&text), BYTES);
    }
    let freed =
        in_mode("cumulative").replace(r#"{"req":24,"#, r#"{"freed":true,"num":1000,"req":24,"#);
    assert_totals("cumulative", &freed, BYTES + 999 * 24);
    assert_totals("cumulative of Firefox", &of_firefox(&in_mode("cumulative")), BYTES);
    let empty = r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},"blockList":[],"traceTable":{},"frameTable":{}}"#;
    let dump = read_slice(empty.as_bytes()).unwrap();
    let none = [Heap::new(&dump, &HeapOptions::default()).unwrap()];
    for format in Format::ALL {
        // An empty heap is a valid file.
        assert!(format == &Format::Folded || !bytes(*format, &none).is_empty(), "{format:?}");
    }
}

#[test]
fn a_sample_is_the_same_estimate_in_every_format() {
    let sampled = HEAP
        .replace(r#"{"req":24,"#, r#"{"weight":7.3,"num":3,"req":24,"#)
        .replace(r#"{"req":40,"slop":8,"#, r#"{"weight":1000.25,"req":40,"slop":8,"#);
    // 3 × 7.3 × 24 is 525.6; 1,000.25 × 40 and × 8 are whole but for a half.
    assert_totals("profile", &sampled, BYTES - 24 + 526 - 48 + 40_010 + 8_002);
}
