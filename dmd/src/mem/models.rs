//! Loom models of what threads share in this room: every interleaving of a small case.
//!
//! Run all models with `RUSTFLAGS="--cfg loom" cargo test -p memreport-dmd --lib -- models`. Each
//! model names a change of two lines, or of one ordering, that makes it fail.

use std::sync::Arc;

use loom::thread;

use super::interner::Interner;
use super::lazy_slice::LazySlice;
use super::sync::AtomicU64;
use super::sync::Ordering::Relaxed;

/// Runs a model in all interleavings with at most this many preemptions.
pub(crate) fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// Fails if `LazySlice::publish` uses a plain store instead of a compare-and-exchange.
#[test]
fn a_slice_is_mapped_once() {
    model(4, || {
        let lazy = Arc::new(LazySlice::<AtomicU64>::new());
        let add = |lazy: &LazySlice<AtomicU64>| {
            lazy.get_or_alloc(2).map(|slice| slice[1].fetch_add(1, Relaxed))
        };
        let other = {
            let lazy = Arc::clone(&lazy);
            thread::spawn(move || add(&lazy))
        };
        add(&lazy);
        other.join().unwrap();
        assert_eq!(lazy.get(2).unwrap()[1].load(Relaxed), 2);
    });
}

/// Fails if `Interner::find` returns a number without comparing its pair.
#[test]
fn a_number_stands_for_its_pair_on_every_thread() {
    model(3, || {
        let interner = Arc::new(Interner::new(100));
        let all = |interner: &Interner, pairs: [(u64, u64); 2]| {
            for pair in pairs {
                let number = interner.intern(pair);
                assert_eq!(interner.get(number), Some(pair));
            }
        };
        let other = {
            let interner = Arc::clone(&interner);
            thread::spawn(move || all(&interner, [(0, 7), (1, 8)]))
        };
        all(&interner, [(1, 8), (0, 7)]);
        other.join().unwrap();
    });
}

/// Fails if `Interner::insert` takes the number that it finds in a slot without comparing its pair.
#[test]
fn a_number_stands_for_its_list_on_every_thread() {
    model(2, || {
        let interner = Arc::new(Interner::new(100));
        let intern = |interner: &Interner, list: [u64; 3]| {
            let mut numbers = Vec::new();
            let whole = interner.intern_list(0, list.into_iter(), |number| numbers.push(number));
            assert_eq!(whole, numbers.last().copied());
            let mut before = 0;
            for (number, word) in numbers.into_iter().zip(list) {
                assert_eq!(interner.get(number), Some((u64::from(before), word)));
                before = number;
            }
        };
        let other = {
            let interner = Arc::clone(&interner);
            thread::spawn(move || intern(&interner, [7, 8, 9]))
        };
        intern(&interner, [7, 8, 10]);
        other.join().unwrap();
    });
}
