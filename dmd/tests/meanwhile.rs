//! Tests modes that change while a collection is made: its dump is that of its beginning.

use std::hint::black_box;
use std::num::NonZeroU64;

use dmd::{Dump, Mode, Options};

dmd::global_allocator!();

fn profile() -> Options {
    let bytes = NonZeroU64::new(64 << 10).expect("it is not zero");
    Options::default().mode(Mode::Profile).sample_bytes(bytes)
}

fn start(options: Options) {
    dmd::start(options).expect("it can start");
}

/// Takes a snapshot with DMD in the first mode. A reporter changes that to the second one.
fn snapshot(first: fn() -> Options, second: fn() -> Options) -> memreport::Snapshot {
    start(first());
    let _registration = memreport::register(move |_: &mut memreport::Reports<'_>| start(second()));
    memreport::snapshot()
}

/// Returns the mode and the sampling distance in the file of a dump.
fn in_file(dump: &Dump) -> (String, Option<u64>) {
    let path = std::env::temp_dir().join(format!("memreport-meanwhile-{}", std::process::id()));
    dump.save(&path).expect("it is written");
    let text = std::fs::read(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it was written");
    let json: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
    let ours = &json["memreport"];
    let mode = ours["mode"].as_str().expect("it has a mode").to_owned();
    (mode, ours["sampled"]["sampleBytes"].as_u64())
}

#[test]
fn a_mode_that_begins_meanwhile_does_not_change_the_dump() {
    let kept: Vec<Vec<u8>> = (0..100).map(|_| black_box(vec![1; 10_000])).collect();
    let of_blocks = snapshot(Options::default, profile);
    let dump = Dump::of(&of_blocks).expect("DMD is awake");
    assert!(dump.sampled().is_none());
    assert_eq!(in_file(dump), ("dark-matter".to_owned(), None));

    let of_profile = snapshot(profile, Options::default);
    let dump = Dump::of(&of_profile).expect("DMD is awake");
    assert!(dump.sampled().is_some());
    assert_eq!(in_file(dump), ("profile".to_owned(), Some(64 << 10)));
    drop(kept);
}
