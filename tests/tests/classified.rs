//! Tests the ceiling assertion for a whole program.
//!
//! There is only one test, since the heap belongs to the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

dmd::global_allocator!();

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/kept", KEPT, "What the program keeps.");

/// Returns the message of the assertion.
fn complaint(max_percent: f64) -> String {
    let result = catch_unwind(AssertUnwindSafe(|| dmd::testing::assert_classified(max_percent)));
    match result {
        Ok(()) => String::new(),
        Err(panic) => panic.downcast_ref::<String>().expect("a sentence").clone(),
    }
}

#[test]
fn the_ceiling_holds_until_something_is_forgotten_or_doubled() {
    // A panic's message may have a backtrace, whose symbols std keeps on the heap forever.
    std::panic::set_hook(Box::new(|_| ()));
    KEPT.lock().expect("nobody panics with it").extend((0..100).map(|_| vec![1; 100_000]));
    dmd::testing::assert_classified(5.0);

    let forgotten = vec![2_u8; 3_000_000];
    let text = complaint(5.0);
    assert!(text.contains(" % of the heap is not reported ("), "{text}");
    assert!(text.contains("bytes in 1 block of 30"), "the block is listed: {text}");
    dmd::testing::assert_classified(50.0);
    drop(forgotten);
    dmd::testing::assert_classified(5.0);

    let again = memreport::register(|reports: &mut memreport::Reports<'_>| {
        reports.measure("explicit/kept-again", &KEPT, "The same once more.");
    });
    let text = complaint(100.0);
    assert!(text.contains("blocks are reported twice:"), "{text}");
    assert!(text.contains("reported by explicit/kept\n"), "{text}");
    assert!(text.contains("reported by explicit/kept-again\n"), "{text}");
    drop(again);
    dmd::testing::assert_classified(5.0);
}
