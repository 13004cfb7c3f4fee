//! A program that forgets ten megabytes little by little, while much more comes and goes: its only argument is over how many
//! seconds.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

dmd::global_allocator!();

/// So often it forgets so many bytes.
const TIMES: u32 = 1000;
const SIZE: usize = 10_000;

/// What is sent to the other thread each time.
const SENT: usize = 20;

static FORGOTTEN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[inline(never)]
fn forgets() {
    let entry = vec![1_u8; SIZE]; // the leak
    if let Ok(mut forgotten) = FORGOTTEN.lock() {
        forgotten.push(entry);
    }
}

/// Blocks of this thread that the other one gives back.
#[inline(never)]
fn hands_over(to: &mpsc::Sender<Vec<u8>>) {
    for number in 0..SENT {
        // Nobody hangs up before the end.
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
        // By the clock, so that a busy machine makes it no longer.
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
