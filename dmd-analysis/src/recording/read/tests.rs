//! Tests reading whole, cut and damaged recordings.

use super::*;
use crate::recording::{Freed, Mark, Moment, Which};
use std::fs;
use std::io::Write;
use std::ops::Range;

const LINES: &str = r#"{"recording":1,"program":"/bin/p","pid":7,"startedMs":5,"sampleBytes":1024}
["module","/bin/p","abcd","1000",["1000-2000"]]
["=",0,100,2,0,0,4096]
["thread",1,70,"main"]
["scope",0,"request"]
["span",1,"0af7651916cd43dd8448eb211c80319c","b7ad6b7169203331"]
["site",1,1,["1010","1020"],1]
["+",10,1,4096,100,112,9.5]
["!",1,"gc"]
["-",5,4096,2]
["-",5,8192,2]
["later",1]
["=",4,212,3,112,1,8192]
{"end":true,"events":2,"lost":3}
"#;

#[test]
fn all_of_a_recording_is_read() {
    let recording = read(LINES.as_bytes()).unwrap();
    assert_eq!(recording.block_count, 1);
    let block = recording.blocks(Which::Allocated).unwrap()[0];
    let freed = Some(Freed { time: 16, thread: 2, site: 0, blocks: 1 });
    assert_eq!((block.allocated_at, block.freed, block.weight), (10, freed, 9.5));
    assert_eq!(recording.marks, [Mark { time: 11, text: "gc".to_owned(), cycle: None }]);
    assert_eq!(recording.timeline[1].live_bytes(), 100);
    assert_eq!((recording.length, recording.lost, recording.is_whole), (25, 3, false));
    assert!(recording.incomplete().unwrap().contains("3 allocations and frees"));
    let whole = LINES.replace("\"lost\":3", "\"lost\":0");
    let whole = read(whole.as_bytes()).unwrap();
    assert!(whole.is_whole && whole.incomplete().is_none());
    assert_eq!(recording.sites[&1].stack, [0x1010, 0x1020]);
    assert_eq!(recording.scopes[usize::from(recording.sites[&1].scope) - 1].name, "request");
    let dump = crate::read::read_slice(&recording.dump(Which::Allocated).unwrap()).unwrap();
    let ids = dump.extension.unwrap().span_ids(1).unwrap();
    assert_eq!((ids.trace[0], ids.span[7]), (0x0a, 0x31));
    assert_eq!(recording.modules[0].segments, [Range { start: 0x1000, end: 0x2000 }]);
}

#[test]
fn what_was_cut_off_is_read_as_far_as_it_goes() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(LINES.as_bytes()).unwrap();
    packed.flush().unwrap();
    let cut = packed.get_ref().clone();
    let recording = read(&cut[..]).unwrap();
    assert_eq!(recording.block_count, 1);
    for length in LINES.find('\n').unwrap() + 1..LINES.len() {
        let recording = read(&LINES.as_bytes()[..length]).unwrap();
        assert!(!recording.is_whole || length == LINES.len());
    }
}

#[test]
fn the_peak_is_exact_to_the_event_if_every_block_is_there() {
    let header = r#"{"recording":1,"pid":7,"startedMs":5,"everyBlock":true}"#;
    // All within a microsecond, between two sums that do not see it.
    let lines = r#"
["=",0,1000,2,100,1,0]
["+",9,1,16,50,64]
["older",0,100]
["+",0,1,32,100,112]
["-",0,16,1]
["+",0,1,48,40,40]
["-",0,32,1]
["=",9,1216,5,276,3,0]
{"end":true,"events":5,"lost":0,"whole":true}
"#;
    let recording = read([header, lines].concat().as_bytes()).unwrap();
    let peak = recording.peak().unwrap();
    // 900 and 64, less 100 and more 112.
    assert_eq!((peak.bytes, peak.time, peak.is_exact), (976, 9, true));
    let at_peak = recording.blocks(Which::AtPeak).unwrap();
    let at_peak: Vec<_> = at_peak.iter().map(|block| block.usable).collect();
    assert_eq!(at_peak, [64, 112]);
    assert_eq!(recording.at(Moment::Peak), Ok(9));
    let header = header.replace("true", "false");
    let recording = read([&header, lines].concat().as_bytes()).unwrap();
    assert_eq!(recording.peak().map(|peak| (peak.bytes, peak.is_exact)), Some((940, false)));
}

/// Two lines and the packed events of a block of 100 bytes, 112 with slop, that is freed.
fn packed() -> Vec<u8> {
    let events = [10 << 3, 0x80, 0x40, 1, 100, 12, 5 << 3 | 1, 0, 2, 112, 1 << 3 | 1, 0, 2, 60];
    let head = br#"{"recording":2,"pid":7,"startedMs":5,"everyBlock":true}
["=",0,1000,2,100,1,0]
["packed",14]
"#;
    let end = b"[\"!\",1,\"gc\"]\n{\"end\":true,\"events\":3,\"lost\":0}\n";
    [head, &events[..], end].concat()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn packed_events_are_read_like_lines() {
    let whole = packed();
    let recording = read(&whole[..]).unwrap();
    let block = recording.blocks(Which::Allocated).unwrap()[0];
    assert_eq!((block.requested, block.usable, block.allocated_at), (100, 112, 10));
    assert_eq!(block.freed, Some(Freed { time: 15, thread: 2, site: 0, blocks: 1 }));
    assert_eq!(recording.marks[0].time, 17);
    // The last event is of a block from before the recording.
    assert_eq!(recording.peak().map(|peak| (peak.bytes, peak.is_exact)), Some((1012, true)));
    for length in whole.iter().position(|byte| *byte == b'\n').unwrap() + 1..whole.len() {
        assert!(!read(&whole[..length]).unwrap().is_whole);
    }
}

#[test]
fn sums_that_no_program_has_are_refused() {
    let text = LINES.replace("[\"=\",4,212,", "[\"=\",4,18446744073709551615,");
    let error = read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "line 13: a sum of 2^62 or more");
}

#[test]
fn of_a_deep_stack_the_innermost_frames_are_read() {
    let deep: Vec<String> =
        (0..1025).map(|address| format!("\"{:x}\"", 0x1010 + address)).collect();
    let text = LINES.replace("\"1010\",\"1020\"", &deep.join(","));
    let recording = read(text.as_bytes()).unwrap();
    let stack = &recording.sites[&1].stack;
    assert_eq!((stack.len(), stack[0]), (1024, 0x1010));
    let note = "1 stack has more than 1024 frames; its outermost frames are left out";
    let dump = recording.dump(Which::Allocated).unwrap();
    for dump in [crate::read::read_slice(&dump).unwrap(), recording.site_dump().unwrap()] {
        assert!(dump.notes.iter().any(|of| of == note), "{:?}", dump.notes);
    }
}

#[test]
fn damaged_pieces_are_refused() {
    let text = packed();
    let place = text.windows(12).position(|part| part == b"[\"packed\",14").unwrap();
    for (length, expected) in [
        ("13", "line 3: its last event is cut off"),
        ("99999999", "line 3: 99999999 bytes of events in one piece, above 67108864"),
        ("-1", "line 3: invalid value"),
    ] {
        let damaged = [&text[..place + 10], length.as_bytes(), &text[place + 12..]].concat();
        let error = read(&damaged[..]).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    for (text, expected) in [
        ("", "no recording"),
        ("{\"version\":5}\n", "no recording"),
        ("{\"recording\":3}\n", "version 3"),
        (
            "{\"recording\":1,\"pid\":1,\"startedMs\":1}\n[\"+\",1]\n",
            "line 2: no number in field 2",
        ),
        ("{\"recording\":1,\"pid\":1,\"startedMs\":1}\nnonsense\n", "line 2: "),
    ] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let head = "{\"recording\":1,\"pid\":1,\"startedMs\":1}\n";
    let long = format!("{head}[\"!\",1,\"{}\"]\n", "x".repeat(17 << 20));
    let error = read(long.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "line 2: it has more than 16777216 bytes");
    assert!(is_recording(LINES.as_bytes()) && is_recording(b"{\"recording\":2}\n"));
    assert!(!is_recording(b"") && !is_recording(b"{\"version\":5,\n"));
}

#[test]
fn weights_that_no_sample_has_are_refused() {
    for weight in ["0.5", "0", "-1", "null", "\"2\""] {
        let text = LINES.replace("112,9.5]", &format!("112,{weight}]"));
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "line 8: the weight of a block is no number from 1 on", "{weight}");
    }
}

#[test]
fn times_that_add_up_to_too_much_stop_at_the_last_one() {
    let far = u64::MAX - 1;
    let text = LINES.replace("[\"!\",1,", &format!("[\"!\",{far},"));
    let recording = read(text.as_bytes()).unwrap();
    assert_eq!(recording.length, u64::MAX);
    let block = recording.blocks(Which::Allocated).unwrap()[0];
    assert_eq!(block.freed.map(|freed| freed.time), Some(u64::MAX));
}

#[test]
fn equal_blocks_of_a_recording_are_one_group_of_its_dump() {
    let lines = r#"{"recording":1,"pid":7,"startedMs":5}
["scope",0,"request"]
["site",1,3,["1010","1020"],1]
["site",2,4,[],0]
["+",1,1,4096,100,112]
["+",1,1,8192,100,112]
["+",1,1,12288,100,112,2.5]
["+",1,2,16384,64,64]
["+",1,9,20480,8,24]
"#;
    let dump = read(lines.as_bytes()).unwrap().dump(Which::Allocated).unwrap();
    let mut dump: Value = serde_json::from_slice(&dump).unwrap();
    let mut stacks = Vec::new();
    for group in dump["blockList"].as_array_mut().unwrap() {
        stacks.push(group.as_object_mut().unwrap().remove("alloc"));
    }
    assert_eq!(stacks[0], stacks[1]);
    let with_stack: Vec<_> = stacks.iter().map(Option::is_some).collect();
    assert_eq!(with_stack, [true, true, false, false]);
    let key = stacks[0].as_ref().and_then(Value::as_str).unwrap();
    assert_eq!(dump["traceTable"][key].as_array().unwrap().len(), 2);
    let expected = serde_json::json!([
        { "req": 100, "slop": 12, "thread": 3, "scope": 1, "num": 2 },
        { "req": 100, "slop": 12, "thread": 3, "scope": 1, "weight": 2.5 },
        { "req": 64, "thread": 4 },
        { "req": 8, "slop": 16 },
    ]);
    assert_eq!(dump["blockList"], expected);
}

#[test]
fn blocks_stay_in_the_file() {
    let path = std::env::temp_dir().join(format!("recording-{}", std::process::id()));
    for bytes in [packed(), gzipped(&packed())] {
        fs::write(&path, &bytes).unwrap();
        let open = || File::open(&path).unwrap();
        let recording = read_with_file(open(), open()).unwrap();
        let in_memory = read(&bytes[..]).unwrap().blocks(Which::Allocated).unwrap();
        // Events that the program adds meanwhile are not read.
        fs::write(&path, [&bytes[..], b"[\"packed\",5]\n", &[0, 2, 1, 8, 0]].concat()).unwrap();
        assert_eq!(recording.blocks(Which::Allocated).unwrap(), in_memory);
        // A file that became shorter no longer has all blocks.
        fs::write(&path, &bytes[..70]).unwrap();
        let error = recording.sums().unwrap_err();
        assert!(error.to_string().starts_with("the recording was changed"), "{error}");
    }
    fs::remove_file(path).unwrap();
}
