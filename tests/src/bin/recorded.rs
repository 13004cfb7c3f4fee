//! A program with known allocations over time: leaked blocks, blocks freed by another thread, and
//! short-lived ones.
#![expect(unsafe_code, reason = "forks")]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

dmd::global_allocator!();

/// The number of blocks of each kind, and their size.
const COUNT: usize = 20_000;
const SIZE: usize = 1000;

#[inline(never)]
fn leaks() -> Vec<Vec<u8>> {
    (0..COUNT).map(|_| vec![1; SIZE]).collect()
}

#[inline(never)]
fn hands_over(to: &mpsc::Sender<Vec<u8>>) {
    for _ in 0..COUNT {
        let _ = to.send(vec![2; SIZE]);
    }
}

#[inline(never)]
fn comes_and_goes() {
    for _ in 0..COUNT {
        drop(std::hint::black_box(vec![3_u8; SIZE]));
    }
}

#[inline(never)]
fn peaks() {
    let pages: Vec<Vec<u8>> = (0..COUNT).map(|_| vec![4; 4 * SIZE]).collect();
    // The recorder samples the sums at intervals.
    thread::sleep(Duration::from_millis(500));
    drop(pages);
}

/// Runs a child that ends normally, exit handlers and all, while its parent is recorded. Returns
/// whether it succeeded.
#[expect(clippy::exit, reason = "the child ends as programs do")]
fn forks() -> bool {
    // SAFETY: the child only ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A child that hangs is ended by this.
        // SAFETY: `alarm` has no preconditions.
        unsafe { libc::alarm(20) };
        memreport::mark("in the child");
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a writable status.
    unsafe { libc::waitpid(child, &raw mut status, 0) == child && status == 0 }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("fork") && !forks() {
        std::process::exit(3);
    }
    let kept = leaks();
    memreport::mark("what is kept is there");
    let mut cycle = memreport::cycle("tidying").nonincremental("requested");
    for _ in 0..2 {
        cycle.slice(|| thread::sleep(Duration::from_millis(2)));
    }
    cycle.finish();
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    let other = thread::Builder::new().name("frees".into()).spawn(move || {
        receiver.into_iter().for_each(drop);
    });
    hands_over(&sender);
    drop(sender);
    if let Ok(other) = other {
        let _ = other.join();
    }
    comes_and_goes();
    peaks();
    if std::env::args().nth(1).as_deref() == Some("abort") {
        thread::sleep(Duration::from_millis(1300));
        std::process::abort();
    }
    // Kept until the end of the process.
    Box::leak(Box::new(kept));
}
