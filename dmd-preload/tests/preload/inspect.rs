//! Programs that are seen from outside, beside glibc's own sums.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::attach::{Running, states, usable};
use crate::dumps::about_memory;
use crate::subject::{Scratch, compile, installed};

/// The sums of `mallinfo2`, and the program's own blocks.
struct Sums {
    own_blocks: u64,
    own_bytes: u64,
    in_use: u64,
    free: u64,
    mapped_blocks: u64,
    mapped_bytes: u64,
    fast_blocks: u64,
    fast_bytes: u64,
}

/// Starts the subject with these tunables of glibc's, and reads its sums.
fn start(program: &Path, tunables: &str, script: &str) -> (Child, Sums) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{script} exec \"$0\"")]).arg(program);
    command.env("GLIBC_TUNABLES", tunables).env_remove("LD_PRELOAD").env_remove("DMD");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let output = child.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("it prints");
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [own_blocks, own_bytes, in_use, free, mapped_blocks, mapped_bytes, fast_blocks, fast_bytes] =
        numbers[..]
    else {
        panic!("{line}")
    };
    let sums = Sums {
        own_blocks,
        own_bytes,
        in_use,
        free,
        mapped_blocks,
        mapped_bytes,
        fast_blocks,
        fast_bytes,
    };
    (child, sums)
}

/// Inspects a process or a core file.
fn inspected(what: &str) -> Value {
    let (out, notes) = about_memory(&["inspect", what, "--json"]).expect("it can be read");
    assert_eq!(notes, "", "{out}");
    serde_json::from_str(&out).expect("JSON")
}

#[track_caller]
fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {value}"))
}

#[track_caller]
fn assert_equal(heap: &Value, sums: &Sums) {
    let of = |path: &str| number(heap, path);
    // glibc counts what threads have at hand as used, with its own structures.
    let in_use = of("/used/bytes") + of("/headers") + of("/cached/bytes") + of("/bookkeeping");
    assert_eq!(in_use, sums.in_use + sums.mapped_bytes, "{heap}");
    assert_eq!(of("/free/bytes") + of("/top") + of("/fast/bytes"), sums.free, "{heap}");
    assert_eq!(of("/fast/blocks"), sums.fast_blocks, "{heap}");
    assert_eq!(of("/fast/bytes"), sums.fast_bytes, "{heap}");
    assert_eq!(of("/mapped/blocks"), sums.mapped_blocks, "{heap}");
    assert_eq!(of("/mapped/bytes"), sums.mapped_bytes, "{heap}");
    assert_eq!(of("/unknown"), 0, "{heap}");
    // The C library has blocks for its threads.
    let [blocks, bytes] = [of("/used/blocks"), of("/used/bytes")];
    assert!((1..20).contains(&(blocks - sums.own_blocks)), "{heap}");
    assert!((1..100_000).contains(&(bytes - sums.own_bytes)), "{heap}");
    let sizes = heap["sizes"].as_array().expect("sizes");
    let sum = |path: &str| sizes.iter().map(|size| number(size, path)).sum::<u64>();
    assert_eq!(sum("/used/bytes"), bytes);
    assert_eq!(sum("/free/bytes"), of("/free/bytes"));
}

/// Ways in which glibc keeps freed blocks, arenas and large blocks.
const TUNABLES: [&str; 6] = [
    "",
    "glibc.malloc.tcache_count=0",
    "glibc.malloc.tcache_count=200",
    "glibc.malloc.arena_max=1",
    "glibc.malloc.mmap_threshold=2000",
    "glibc.malloc.mxfast=0:glibc.malloc.perturb=165",
];

#[test]
fn the_sums_are_glibcs_to_the_byte() {
    let scratch = Scratch::new("inspect");
    let Some(program) = compile(&scratch, "heap.c", "heap", &[]) else { return };
    for tunables in TUNABLES {
        let (mut child, sums) = start(&program, tunables, "");
        let pid = child.id().to_string();
        let heap = inspected(&pid);
        assert_equal(&heap, &sums);
        assert!(!states(&pid).contains(['T', 't']));
        // The same again: nothing was changed.
        assert_eq!(heap["used"], inspected(&pid)["used"]);
        let (text, _) = about_memory(&["inspect", &pid, "--blocks"]).expect("it can be read");
        let listed = text.lines().skip_while(|line| !line.contains("block at")).skip(1);
        assert_eq!(listed.count() as u64, number(&heap, "/used/blocks"));
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
    }
}

#[test]
fn a_core_file_has_the_same_heap() {
    let scratch = Scratch::new("inspect-core");
    let Some(program) = compile(&scratch, "heap.c", "heap", &[]) else { return };
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') || pattern.contains('/') {
        return println!("not run: core files go to {pattern}");
    }
    let script = format!("cd {}; ulimit -c unlimited;", scratch.0.display());
    let (mut child, sums) = start(&program, "", &script);
    let pid = child.id().to_string();
    Command::new("kill").args(["-ABRT", &pid]).status().expect("kill starts");
    if !child.wait().expect("it ends").core_dumped() {
        return println!("not run: the kernel writes no core file here");
    }
    let files = std::fs::read_dir(&scratch.0).expect("a folder").flatten();
    let core = files.map(|file| file.path()).find(|path| path != &program).expect("a core file");
    let name = core.to_str().expect("text");
    assert_equal(&inspected(name), &sums);

    let bytes = std::fs::read(&core).expect("it is ours");
    let cut = scratch.join("cut");
    std::fs::write(&cut, &bytes[..bytes.len() - 5000]).expect("a file");
    let error = about_memory(&["inspect", cut.to_str().expect("text")]).expect_err("cut off");
    assert!(error.contains("the core file is cut off"), "{error}");
    // The machine in the header: 183 is AArch64.
    let mut other = bytes;
    other[18] = 183;
    std::fs::write(&cut, other).expect("a file");
    let error = about_memory(&["inspect", cut.to_str().expect("text")]).expect_err("another");
    assert!(error.contains("a core file of another processor"), "{error}");
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn programs_under_load_are_inspected_many_times_and_go_on() {
    let scratch = Scratch::new("inspect-load");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let mut running = Running::start(&program, &["churn=3", "wait=2"]);
    running.tell("keep 1000 500");
    let mut incomplete = 0;
    for _ in 0..100 {
        let (out, notes) = about_memory(&["inspect", &running.pid(), "--json"]).expect("it runs");
        let heap: Value = serde_json::from_str(&out).expect("JSON");
        // 1,000 blocks, and at most 256 of each thread.
        assert!(number(&heap, "/used/blocks") >= 1000, "{heap}");
        incomplete += u32::from(!notes.is_empty());
        assert!(!states(&running.pid()).contains('t'));
    }
    assert_eq!(incomplete, 0, "copies that were taken in the midst of a change are taken again");
    running.tell("drop");
    running.end();
}

/// Signals of real time are queued, so that each is delivered once.
#[test]
fn no_signal_is_lost_or_delivered_twice() {
    let scratch = Scratch::new("inspect-signals");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let mut running = Running::start(&program, &["churn=2", "signals=600"]);
    // The handler is there.
    running.tell("keep 1 1");
    let script = "i=0; while [ $i -lt 600 ]; do kill -40 \"$0\"; i=$((i + 1)); done";
    let mut sender = Command::new("sh");
    let mut sender = sender.args(["-c", script, &running.pid()]).spawn().expect("it starts");
    let mut copies = 0;
    while sender.try_wait().expect("ours").is_none() || copies < 20 {
        about_memory(&["inspect", &running.pid(), "--json"]).expect("it runs");
        copies += 1;
        if copies == 5 {
            running.attach(&[]).expect("it is tracked");
        }
    }
    running.tell("drop");
    running.end();
}

#[test]
fn what_cannot_be_inspected_is_named_with_the_reason() {
    let scratch = Scratch::new("inspect-refused");
    let refused = |what: &str| about_memory(&["inspect", what]).expect_err("it has no heap");
    assert_eq!(refused("4194304"), "there is no process 4194304");
    let file = scratch.join("text");
    std::fs::write(&file, "no core file").expect("a file");
    assert!(refused(file.to_str().expect("text")).contains("neither the number of a process nor"));
    assert!(refused("/dev/zero").contains("neither the number of a process nor"));
    let own = std::env::current_exe().expect("a path");
    assert!(refused(own.to_str().expect("text")).contains("neither the number of a process nor"));
    if let Some(program) = compile(&scratch, "running.c", "static", &["-static"]) {
        let running = Running::start(&program, &[]);
        let error = refused(&running.pid());
        assert!(error.contains("it is statically linked"), "{error}");
        assert!(error.contains("Its writable mappings without a file have "), "{error}");
        running.end();
    }
    // A stripped program whose file is gone is as good as any.
    let (Some(program), Some(strip)) =
        (compile(&scratch, "heap.c", "stripped", &[]), installed("strip"))
    else {
        return;
    };
    assert!(Command::new(strip).arg(&program).status().expect("it starts").success());
    let (mut child, sums) = start(&program, "", "");
    std::fs::remove_file(&program).expect("ours");
    assert_equal(&inspected(&child.id().to_string()), &sums);
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

/// Returns the retained bytes below each root of a saved heap.
fn retained(dump: &str) -> BTreeMap<String, u64> {
    let (text, _) = about_memory(&["heap", "dominators", dump, "--json"]).expect("a dump");
    let tree: Value = serde_json::from_str(&text).expect("JSON");
    let kids = tree["heap"]["kids"].as_array().unwrap_or_else(|| panic!("{text}"));
    let mut roots = BTreeMap::new();
    for kid in kids {
        let name = kid["name"].as_str().or(kid["is"].as_str()).expect("a name");
        let name = name.trim_end_matches(|end: char| end.is_ascii_digit()).to_owned();
        *roots.entry(name).or_default() += number(kid, "/retained");
    }
    roots
}

#[test]
fn a_saved_heap_tells_what_holds_its_blocks_and_what_is_leaked() {
    let scratch = Scratch::new("inspect-held");
    let Some(program) = compile(&scratch, "held.c", "held", &[]) else { return };
    let script = format!("cd {}; ulimit -c unlimited;", scratch.0.display());
    let (mut child, _) = start(&program, "", &script);
    let (pid, live) = (child.id().to_string(), scratch.join("live.dmd.json.gz"));
    let live = live.to_str().expect("text");
    let (text, notes) =
        about_memory(&["inspect", &pid, "--json", "--save", live]).expect("it runs");
    assert!(notes.contains("live.dmd.json.gz"), "{notes}");
    let heap: Value = serde_json::from_str(&text).expect("JSON");
    let check = |roots: &BTreeMap<String, u64>| {
        assert_eq!(roots.values().sum::<u64>(), number(&heap, "/used/bytes"), "{roots:?}");
        let node = usable(16);
        assert_eq!(roots["static_list"], 10 * (usable(100_000) + node), "{roots:?}");
        // Each thread's list, and blocks of the C library for it.
        let lists = 300 * (usable(2000) + node) + 200 * (usable(1000) + node);
        let of_threads = roots["stack and thread-locals of thread "];
        assert!(of_threads.abs_diff(lists) < 50_000, "{roots:?}");
        // Old words of a stack may lead to some.
        let forgotten = 50 * usable(4000);
        assert!(
            (forgotten - 5 * usable(4000)..=forgotten).contains(&roots["nothing"]),
            "{roots:?}"
        );
    };
    check(&retained(live));
    let (why, _) = about_memory(&["heap", live]).expect("it is a dump");
    assert!(why.contains("heap-allocated"), "{why}");
    Command::new("kill").args(["-ABRT", &pid]).status().expect("kill starts");
    child.wait().expect("it ends");
    let files = std::fs::read_dir(&scratch.0).expect("a folder").flatten();
    let is_core = |name: &str| name.starts_with("core");
    let core = files
        .map(|file| file.path())
        .find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_core));
    let Some(core) = core else { return println!("not run: the kernel writes no core file here") };
    let saved = scratch.join("core.dmd.json");
    let [core, saved] = [&core, &saved].map(|path| path.to_str().expect("text"));
    about_memory(&["inspect", core, "--save", saved]).expect("a core file");
    check(&retained(saved));
}
