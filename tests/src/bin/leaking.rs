//! A program that leaks ten megabytes little by little, over the seconds in its only argument,
//! while it allocates and frees much more.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

dmd::global_allocator!();

/// The number of leaks, and the bytes of each.
const TIMES: u32 = 1000;
const SIZE: usize = 10_000;

/// The number of blocks sent to the other thread each time.
const SENT: usize = 20;

static FORGOTTEN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[inline(never)]
fn forgets() {
    let entry = vec![1_u8; SIZE]; // the leak
    if let Ok(mut forgotten) = FORGOTTEN.lock() {
        forgotten.push(entry);
    }
}

/// Sends blocks of this thread, which the other one frees.
#[inline(never)]
fn hands_over(to: &mpsc::Sender<Vec<u8>>) {
    for number in 0..SENT {
        // The receiver lives until the end.
        let _ = to.send(vec![2_u8; 1000 + number]);
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1.0);
    let step = Duration::from_secs_f64(seconds) / TIMES;
    if let Ok(mut forgotten) = FORGOTTEN.lock() {
        forgotten.reserve_exact(TIMES as usize);
    }
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    let other = thread::Builder::new().name("frees".into()).spawn(move || {
        receiver.into_iter().for_each(drop);
    });
    memreport::mark("it begins");
    let begin = Instant::now();
    for time in 0..TIMES {
        // By the clock, so that a busy machine does not prolong it.
        thread::sleep((step * time).saturating_sub(begin.elapsed()));
        forgets();
        hands_over(&sender);
    }
    memreport::mark("all is forgotten");
    drop(sender);
    if let Ok(other) = other {
        let _ = other.join();
    }
}
