//! The subject of tests that declares DMD itself. It prints how often its tracker counts a known
//! block.

use std::sync::Mutex;

dmd::global_allocator!();

static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/with-dmd/kept", KEPT, "The block of known size.");

#[expect(clippy::print_stdout, reason = "the test reads it")]
fn main() {
    let counted = || memreport::heap_counters().unwrap_or_default().live_bytes();
    let before = counted();
    if let Ok(mut kept) = KEPT.lock() {
        kept.reserve_exact(1_000_000);
    }
    let grown = counted() - before;
    let snapshot = memreport::snapshot();
    let dump = dmd::Dump::of(&snapshot);
    let is_once = (1_000_000..1_005_000).contains(&grown)
        && dump
            .as_ref()
            .is_none_or(|dump| (1_000_000..1_005_000).contains(&dump.summary().once.bytes));
    let times = if is_once { "once" } else { "not once" };
    println!("1000000 bytes {times}, {}", if dump.is_some() { "awake" } else { "asleep" });
}
