//! Ten tests: those that check, beside those that allocate, panic, lock and start threads.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use dmd::testing::{Baseline, Budget, Limits};
use suite::shop::{Article, Order, add_order};

static OWN: Mutex<Vec<Article>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/own", OWN, "Articles of this module.");

static SERVED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/served", SERVED, "Bytes of a thread.");

#[test]
fn orders_are_reported() {
    let since = Baseline::new();
    add_order(Order::new(40));
    since.assert_classified(5.0);
}

#[test]
fn types_measure_all_they_own() {
    dmd::assert_fully_reported!(Article::new("type ", 9));
    dmd::assert_fully_reported!(Order::new(9));
}

#[test]
fn allocates_what_no_one_reports() {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for round in 0..2000 {
        kept.push(vec![1; 100 + round]);
        kept.truncate(50);
    }
    let sum: usize = std::thread::spawn(move || kept.iter().map(Vec::len).sum()).join().unwrap();
    assert_eq!(sum, (100..150).sum::<usize>());
}

#[test]
#[should_panic(expected = "no such article")]
fn panics_while_it_holds_memory() {
    let _since = Baseline::new();
    let held = vec![String::from("held"); 100];
    let at = held.iter().position(|name| name == "other");
    at.unwrap_or_else(|| panic!("no such {}", "article"));
}

#[test]
fn a_poisoned_lock_is_reported() {
    let since = Baseline::new();
    let threads = since.threads();
    let panicked = std::thread::spawn(move || {
        threads.join_in(|| {
            let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
            own.push(Article::new("poisoned ", 30));
            std::panic::resume_unwind(Box::new("with the lock"))
        })
    });
    assert!(panicked.join().is_err());
    assert!(OWN.is_poisoned());
    since.assert_classified(Limits::bytes(2048));
}

#[test]
fn threads_join_in() {
    let since = Baseline::new();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let threads = since.threads();
            std::thread::spawn(move || threads.join_in(|| add_order(Order::new(10))))
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    since.assert_classified(Limits::percent(20.0).and_bytes(8192));
}

#[test]
fn a_named_thread_is_reported() {
    let name = module_path!().rsplit("::").next().unwrap();
    let since = Baseline::new().and_threads_named(name);
    let (done, is_done) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let service = std::thread::Builder::new().name(name.into()).spawn(move || {
        *SERVED.lock().unwrap() = vec![1; 50_000];
        done.send(()).unwrap();
        let _ = stopped.recv();
    });
    is_done.recv().unwrap();
    since.assert_classified(Limits::bytes(4096));
    drop(stop);
    service.unwrap().join().unwrap();
}

#[test]
fn an_order_stays_within_its_budget() {
    Budget::new().max_bytes(100_000).no_leak().assert(|_| drop(Order::new(5)));
}

#[test]
fn a_check_is_a_result() -> Result<(), String> {
    let since = Baseline::new();
    OWN.lock().unwrap_or_else(PoisonError::into_inner).push(Article::new("result ", 20));
    since.check(Limits::bytes(1024).and_percent(10.0))
}

#[test]
fn what_is_shared_has_an_owner_elsewhere() {
    let article = Arc::new(Article::new("shared ", 2));
    let order = Order { articles: [(1, Arc::clone(&article))].into(), note: None };
    let cache = Order { articles: [(1, article)].into(), note: None };
    dmd::assert_fully_reported!(order, shared_with(&cache, "the cache has the article too"));
}
