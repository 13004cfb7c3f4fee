//! Tests a program that locks its memory, as databases and audio programs do.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "locks the memory of the process")]

use std::fs;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dmd::Options;

dmd::global_allocator!();

/// The locked bytes, and the bytes of address space, of the process during the last collection.
static DURING: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The names of both in the process's status.
const LINES: [&str; 2] = ["VmLck:", "VmSize:"];

/// Returns a number of bytes from the process's status.
fn bytes_of(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("it is there");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("it is a number");
    kib << 10
}

#[test]
fn a_collection_locks_little_more_memory() {
    dmd::start(Options::default()).expect("it can start");
    // SAFETY: it changes no value of the program.
    let result = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    let before = LINES.map(bytes_of);
    if result != 0 || before[0] == 0 {
        println!("not run: this user may not lock memory, or a sanitizer ignores it");
        return;
    }
    let kept = vec![7_u8; 100_000];
    let _registration = memreport::register(move |reports: &mut memreport::Reports<'_>| {
        for (during, line) in DURING.iter().zip(LINES) {
            during.store(bytes_of(line), Relaxed);
        }
        reports.measure("explicit/kept", &kept, "A block.");
    });
    let snapshot = memreport::snapshot();
    let [locked, mapped] = [0, 1].map(|which| DURING[which].load(Relaxed) - before[which]);
    // The copy of the table for one region of addresses is mapped in 256 MiB.
    assert!(mapped >= 256 << 20 && locked < 128 << 20, "{mapped} {locked}");
    assert!(dmd::Dump::of(&snapshot).is_some());
}
