//! Tests with a planted defect: each must fail, and its message must name the defect.

use std::sync::{Arc, Mutex};

use dmd::testing::{Baseline, Budget, Limits};
use memreport::{MallocSizeOf, Ops};

use crate::shop::{Article, Order, add_order};

#[derive(MallocSizeOf)]
struct Derived {
    _name: String,
    #[malloc_size_of(ignore = "it is small")]
    _pictures: Vec<Vec<u8>>,
}

#[test]
fn a_derived_type_skips_a_field() {
    let pictures = vec![vec![1; 500]; 3];
    dmd::assert_fully_reported!(Derived { _name: "derived".repeat(9), _pictures: pictures });
}

struct ByHand {
    name: String,
    _pictures: Vec<Vec<u8>>,
}

impl MallocSizeOf for ByHand {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.name);
    }
}

#[test]
fn an_impl_by_hand_forgets_a_field() {
    let by_hand = || ByHand { name: "by hand".repeat(9), _pictures: vec![vec![1; 500]; 3] };
    dmd::assert_fully_reported!(by_hand());
}

#[derive(MallocSizeOf)]
struct Around {
    parts: Vec<ByHand>,
}

#[test]
fn an_inner_impl_by_hand_forgets_a_field() {
    let part = || ByHand { name: "part".repeat(9), _pictures: vec![vec![1; 500]; 3] };
    dmd::assert_fully_reported!(Around { parts: vec![part(), part()] });
}

static SKIPPING: Mutex<Vec<Derived>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/skipping", SKIPPING, "Values with a skipped field.");

#[test]
fn a_reported_value_skips_a_field() {
    let since = Baseline::new();
    let pictures = vec![vec![1; 20_000]; 2];
    SKIPPING.lock().unwrap().push(Derived { _name: "skipping".into(), _pictures: pictures });
    since.assert_classified(5.0);
}

static FORGETTING: Mutex<Vec<ByHand>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/forgetting", FORGETTING, "Values with a forgotten field.");

#[test]
fn a_reported_value_forgets_a_field() {
    let since = Baseline::new();
    let pictures = vec![vec![1; 20_000]; 2];
    FORGETTING.lock().unwrap().push(ByHand { name: "forgetting".into(), _pictures: pictures });
    since.assert_classified(5.0);
}

static UNREPORTED: Mutex<Vec<Article>> = Mutex::new(Vec::new());

#[test]
fn a_static_has_no_reporter() {
    let since = Baseline::new();
    UNREPORTED.lock().unwrap().push(Article::new("unreported ", 30));
    since.assert_classified(Limits::bytes(1000));
}

static TWICE: Mutex<Vec<Article>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/first", TWICE, "Reported here.");
memreport::reporter!("explicit/second", TWICE, "And here.");

#[test]
fn a_static_has_two_reporters() {
    let since = Baseline::new();
    TWICE.lock().unwrap().push(Article::new("twice ", 30));
    since.assert_classified(Limits::percent(100.0));
}

#[test]
fn an_order_exceeds_its_budget() {
    Budget::new().max_blocks(3).assert(|_| drop(Order::new(5)));
}

#[test]
fn an_owner_elsewhere_is_not_declared() {
    let article = Arc::new(Article::new("shared ", 2));
    let order = Order { articles: [(1, Arc::clone(&article))].into(), note: None };
    add_order(Order { articles: [(1, article)].into(), note: None });
    dmd::assert_fully_reported!(order);
}

#[test]
fn a_thread_that_joined_in_is_not_reported() {
    let since = Baseline::new();
    let threads = since.threads();
    let worker = std::thread::spawn(move || threads.join_in(|| vec![1_u8; 60_000]));
    let kept = worker.join().unwrap();
    since.assert_classified(Limits::bytes(5000));
    drop(kept);
}
