//! Tests a program that locks its memory, as databases and audio programs do.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "locks the memory of the process")]

use std::fs;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dmd::Options;

dmd::global_allocator!();

/// The locked bytes of the process during the last collection.
static LOCKED: AtomicU64 = AtomicU64::new(0);

/// Returns the locked bytes of the process.
fn locked() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("it is there");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("it is a number");
    kib << 10
}

#[test]
fn a_collection_locks_little_more_memory() {
    dmd::start(Options::default()).expect("it can start");
    // SAFETY: it changes no value of the program.
    let result = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    if result != 0 {
        let error = std::io::Error::last_os_error();
        println!("not run: this user may not lock memory: {error}");
        return;
    }
    let kept = vec![7_u8; 100_000];
    let _registration = memreport::register(move |reports: &mut memreport::Reports<'_>| {
        LOCKED.store(locked(), Relaxed);
        reports.measure("explicit/kept", &kept, "A block.");
    });
    let before = locked();
    let snapshot = memreport::snapshot();
    let during = LOCKED.load(Relaxed);
    assert!(before > 0 && during > 0, "{before} {during}");
    // The copy of the table for one region of addresses is mapped in 256 MiB.
    assert!(during < before + (64 << 20), "{before} {during}");
    assert!(dmd::Dump::of(&snapshot).is_some());
}
