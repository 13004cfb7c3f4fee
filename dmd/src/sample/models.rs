//! Loom models of the plan and of rates. See `mem::models` for how to run them.

use std::sync::Arc;

use loom::thread;

use super::rate::{Probability, RateCell, RateTable, SamplingRate};
use super::stops;
use crate::mem::models::model;
use crate::mem::published::Published;
use crate::mem::sync::Ordering::Relaxed;
use crate::mem::sync::{AtomicU32, AtomicU64};

/// Fails if `Published::set` or `Published::get` is relaxed: the thread then draws at a rate that
/// has no probability, which means that it never samples again.
#[test]
fn a_thread_that_sees_a_rate_sees_its_probability() {
    model(3, || {
        let probability = Probability { mean: None, of_block: 0.5 };
        let shared = Arc::new((RateTable::new(), RateCell::new(SamplingRate::EVERY)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (table, current) = &*shared;
                current.set(table.rate_of(probability).unwrap());
            })
        };
        let (table, current) = &*shared;
        match current.get() {
            SamplingRate::EVERY => {}
            rate => assert_eq!(table.of(rate), Some(probability)),
        }
        writer.join().unwrap();
    });
}

/// Fails if `Published::update` or `Published::get` is relaxed: the thread then takes stacks before
/// it sees an unwinder, and loses them.
#[test]
fn a_thread_that_sees_a_plan_sees_what_was_set_before() {
    const STACKS: u32 = 1;
    const EVENTS: u32 = 2;
    const UNWINDER: u32 = 3;
    model(3, || {
        // The unwinder is a plain number here, which only the plan orders.
        let shared = Arc::new((Published::new(0), AtomicU32::new(0)));
        // The other thread reads. Loom records only the last access to an atomic, so the load in
        // `update` would hide a read before it.
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (plan, unwinder) = &*shared;
                if plan.get() & STACKS != 0 {
                    assert_eq!(unwinder.load(Relaxed), UNWINDER);
                }
            })
        };
        let (plan, unwinder) = &*shared;
        unwinder.store(UNWINDER, Relaxed);
        plan.update(|plan| plan | STACKS);
        // A recording begins.
        plan.update(|plan| plan | EVENTS);
        reader.join().unwrap();
        assert_eq!(plan.get(), STACKS | EVENTS);
    });
}

/// Fails without one of the fences in `stops`, or if `set` does not look at the plan again: the
/// thread then passes by every block of the new plan.
#[test]
fn no_thread_misses_a_change_of_the_plan() {
    const OLD: u64 = 1000;
    model(3, || {
        let shared = Arc::new((Published::new(1), AtomicU64::new(stops::AT_ONCE)));
        let thread = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (plan, stop) = &*shared;
                let seen = plan.get();
                let sum = if seen == 1 { OLD } else { stops::AT_ONCE };
                stops::set(stop, sum, || plan.get() == seen);
            })
        };
        let (plan, stop) = &*shared;
        plan.set(2);
        stops::clear(std::iter::once(stop));
        thread.join().unwrap();
        assert_eq!(stop.load(Relaxed), stops::AT_ONCE);
    });
}
