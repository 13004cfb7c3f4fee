//! One process from all sides: the tracker's counters, its dump, glibc's own sums, and `inspect`.
//! Blocks are compared by address and size; each difference has a name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::dumps::about_memory;
use crate::subject::{Scratch, With, command, compile};
use crate::with_c::library_of_c;
use crate::with_c::service::{Service, numbers};

/// The usable size of each block, by its address.
type Blocks = BTreeMap<u64, u64>;

/// A process from outside.
struct Inspected {
    blocks: Blocks,
    sums: Value,
}

impl Inspected {
    fn of(pid: &str) -> Self {
        let (json, notes) = about_memory(&["inspect", pid, "--json"]).expect("it can be read");
        assert_eq!(notes, "", "{json}");
        let (text, _) = about_memory(&["inspect", pid, "--blocks"]).expect("it can be read");
        let lines = text.lines().skip_while(|line| !line.contains("block at")).skip(1);
        let block = |line: &str| {
            let (address, bytes) = line.trim().split_once(' ').expect("two numbers");
            let address = u64::from_str_radix(address, 16).expect("an address");
            (address, bytes.trim().parse().expect("bytes"))
        };
        let sums = serde_json::from_str(&json).expect("JSON");
        Inspected { blocks: lines.map(block).collect(), sums }
    }

    fn sum(&self, path: &str) -> u64 {
        self.sums.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{}", self.sums))
    }

    /// Returns what `mallinfo2` has: also headers, blocks at hand, and glibc's structures.
    fn in_use(&self) -> u64 {
        ["/used/bytes", "/headers", "/cached/bytes", "/bookkeeping"]
            .map(|path| self.sum(path))
            .iter()
            .sum()
    }
}

/// A dump of a scan.
struct Dumped {
    blocks: Blocks,
    /// The blocks that the server's threads allocated, which they free when the answer is sent.
    of_server: BTreeSet<u64>,
}

impl Dumped {
    fn of(scratch: &Scratch) -> Self {
        let [dump, whole] = ["now.dmd.json.gz", "whole.json"].map(|name| scratch.join(name));
        let [dump, whole] = [&dump, &whole].map(|path| path.to_str().expect("text"));
        about_memory(&["symbolicate", dump, "-o", whole]).expect("a dump");
        let text = std::fs::read_to_string(whole).expect("text");
        let dump: Value = serde_json::from_str(&text).expect("JSON");
        let threads = dump["memreport"]["threads"].as_array().expect("threads");
        let of_server: BTreeSet<u64> = threads
            .iter()
            .filter(|thread| {
                thread["name"].as_str().is_some_and(|name| name.starts_with("memreport"))
            })
            .filter_map(|thread| thread["id"].as_u64())
            .collect();
        let mut dumped = Dumped { blocks: Blocks::new(), of_server: BTreeSet::new() };
        for block in dump["blockList"].as_array().expect("blocks") {
            let address =
                block["addr"].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
            let address = address.expect("an address");
            let bytes = |name: &str| block[name].as_u64().unwrap_or(0);
            dumped.blocks.insert(address, bytes("req") + bytes("slop"));
            if of_server.contains(&bytes("thread")) {
                dumped.of_server.insert(address);
            }
        }
        dumped
    }

    /// Asserts that the blocks of the dump are the process's, with the same sizes, apart from the
    /// server's, which has answered. Returns the sizes of the blocks that the dump lacks.
    #[track_caller]
    fn assert_same(&self, inspected: &Inspected) -> Vec<u64> {
        for (address, bytes) in &self.blocks {
            match inspected.blocks.get(address) {
                Some(seen) => assert_eq!(seen, bytes, "{address:x}"),
                None => assert!(self.of_server.contains(address), "{address:x}: {bytes} bytes"),
            }
        }
        let lacks = |(address, _): &(&u64, &u64)| !self.blocks.contains_key(address);
        inspected.blocks.iter().filter(lacks).map(|(_, bytes)| *bytes).collect()
    }
}

/// The time that the server's threads have to free what an answer took.
const ANSWERED: Duration = Duration::from_millis(500);

#[expect(clippy::print_stdout, reason = "the table is for people, too")]
fn print_row(who: &str, bytes: u64, blocks: u64) {
    println!("{who}: {bytes} bytes in {blocks} blocks");
}

#[test]
fn a_program_with_dmd_and_its_c_heap() {
    let scratch = Scratch::new("same-c-heap");
    let Some(library) = library_of_c(&scratch) else { return };
    let mut service = Service::start(&library, With::Library("--mode=scan"));
    (0..5).for_each(|_| service.request());
    service.snapshot(&scratch.join("now.json.gz"));
    thread::sleep(ANSWERED);
    let [bytes, blocks, glibc] = service.counts();
    let inspected = Inspected::of(&service.pid());
    assert_eq!(service.counts(), [bytes, blocks, glibc], "nothing has changed");
    service.end();

    // The counters have every block: of Rust, of C, and of the tracker itself.
    assert_eq!([inspected.sum("/used/bytes"), inspected.sum("/used/blocks")], [bytes, blocks]);
    assert_eq!(inspected.in_use(), glibc);
    let dumped = Dumped::of(&scratch);
    let own = dumped.assert_same(&inspected);
    print_row("declared allocator with --c-heap, counters", bytes, blocks);
    print_row("inspect", inspected.blocks.values().sum(), inspected.blocks.len() as u64);
    print_row("dump", dumped.blocks.values().sum(), dumped.blocks.len() as u64);
    print_row("of the tracker and its server, in no dump", own.iter().sum(), own.len() as u64);
    // The tracker keeps the modules whose symbols it has read: a few blocks for each.
    assert!(own.len() < 64 && own.iter().sum::<u64>() < 10_000, "{own:?}");
}

#[test]
fn a_program_with_dmd_alone() {
    let scratch = Scratch::new("same-declared");
    let Some(library) = library_of_c(&scratch) else { return };
    let mut program = Service::start_alone(&library, "--mode=scan");
    program.snapshot(&scratch.join("now.json.gz"));
    thread::sleep(ANSWERED);
    let [bytes, blocks, glibc] = program.counts();
    let inspected = Inspected::of(&program.pid());
    assert_eq!(program.counts(), [bytes, blocks, glibc], "nothing has changed");
    let [c_bytes, c_blocks] = program.of_c;
    program.end();

    assert_eq!(inspected.in_use(), glibc);
    // The tracker has no block of C: the library's, and a few of the C library's own.
    let rest_bytes = inspected.sum("/used/bytes") - bytes - c_bytes;
    let rest_blocks = inspected.sum("/used/blocks") - blocks - c_blocks;
    print_row("declared allocator, counters", bytes, blocks);
    print_row("the library of C", c_bytes, c_blocks);
    print_row("the C library and the linker", rest_bytes, rest_blocks);
    print_row("inspect", inspected.sum("/used/bytes"), inspected.sum("/used/blocks"));
    assert!((1..20).contains(&rest_blocks) && rest_bytes < 5000, "{rest_blocks}: {rest_bytes}");
    let dumped = Dumped::of(&scratch);
    let others = dumped.assert_same(&inspected);
    // What the dump lacks of the tracker's blocks are its own.
    let own = others.len() as u64 - c_blocks - rest_blocks;
    assert!(own < 20, "{own}");
}

#[test]
fn a_program_without_dmd() {
    let scratch = Scratch::new("same-preload");
    let Some(program) = compile(&scratch, "counters.c", "counters", &["-ldl"]) else { return };
    let mut child = command(&program, With::Library("--mode=scan"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = child.id().to_string();
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut counts = || -> [u64; 3] {
        child.stdin.as_mut().expect("a pipe").write_all(b"count\n").expect("it reads");
        let mut line = String::new();
        output.read_line(&mut line).expect("text");
        numbers(&line, "counted ")
    };
    counts();
    let report = scratch.join("now.json.gz");
    take_snapshot(&pid, &report);
    thread::sleep(ANSWERED);
    let [bytes, blocks, glibc] = counts();
    let inspected = Inspected::of(&pid);
    assert_eq!(counts(), [bytes, blocks, glibc], "nothing has changed");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());

    assert_eq!([inspected.sum("/used/bytes"), inspected.sum("/used/blocks")], [bytes, blocks]);
    assert_eq!(inspected.in_use(), glibc);
    let dumped = Dumped::of(&scratch);
    let own = dumped.assert_same(&inspected);
    print_row("preloaded library, counters", bytes, blocks);
    print_row("inspect", inspected.blocks.values().sum(), inspected.blocks.len() as u64);
    print_row("dump", dumped.blocks.values().sum(), dumped.blocks.len() as u64);
    print_row("of the tracker and its server, in no dump", own.iter().sum(), own.len() as u64);
    assert!(own.len() < 30 && own.iter().sum::<u64>() < 20_000, "{own:?}");
}

/// Takes a snapshot, once the program has its socket.
#[track_caller]
fn take_snapshot(pid: &str, report: &Path) {
    let words = ["snapshot", pid, "--dump", "-o", report.to_str().expect("text")];
    let answer = (0..50).find_map(|_| {
        thread::sleep(Duration::from_millis(100));
        about_memory(&words).ok()
    });
    assert!(answer.is_some(), "{:?}", about_memory(&words));
}
