//! Tests a program that starts tracking on several threads at once.

use std::num::NonZeroU64;
use std::sync::Barrier;
use std::thread;

use dmd::{Mode, Options};

dmd::global_allocator!();

const ROUNDS: usize = 5000;

/// Options, and the words for them.
const STARTS: [(Mode, u64, &str); 3] = [
    (Mode::Profile, 64 << 10, "profile, a sample each 65536 bytes"),
    (Mode::Live, 1, "live, no stacks"),
    (Mode::Profile, 1 << 20, "profile, a sample each 1048576 bytes"),
];

#[test]
fn of_several_starts_at_once_one_is_in_force_with_all_its_options() {
    let tracker = memreport::__private::tracker().expect("it is declared");
    let ready = Barrier::new(STARTS.len());
    // All start, and then look at what is in force before any of them starts again.
    let start = |(mode, bytes, _)| {
        let bytes = NonZeroU64::new(bytes).expect("it is not zero");
        let stacks = if mode == Mode::Live { dmd::Stacks::None } else { dmd::Stacks::Full };
        let options = Options::default().mode(mode).sample_bytes(bytes).stacks(stacks);
        let mut others = Vec::new();
        for _ in 0..ROUNDS {
            ready.wait();
            dmd::start(options).expect("there are rates");
            ready.wait();
            let state = tracker.state();
            others.extend((!STARTS.iter().any(|(.., words)| state == *words)).then_some(state));
        }
        others
    };
    let others: Vec<String> = thread::scope(|scope| {
        let start = &start;
        let threads = STARTS.map(|of| scope.spawn(move || start(of)));
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(others, Vec::<String>::new());
}
