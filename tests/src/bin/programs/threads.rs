//! Threads by the thousand, and thread-local destructors that allocate.

use std::cell::RefCell;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use crate::Failure;
use crate::planted::{plant, save};

/// Starts and ends 3000 threads, at most 8 at once; each leaves one block in its message.
pub(crate) fn many(path: &Path) -> Result<(), Failure> {
    let mut kept = Vec::new();
    for _ in 0..375 {
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(work)).collect();
        for thread in threads {
            kept.extend(thread.join().map_err(|_| "a thread panicked")?);
        }
    }
    save(path)?;
    drop(kept);
    Ok(())
}

fn work() -> Vec<Vec<u8>> {
    let lost: Vec<String> = (0..10).map(|number| format!("lost {number}")).collect();
    drop(std::hint::black_box(lost));
    plant(1)
}

/// A thread-local value that sends a block when its thread ends.
struct Last(mpsc::Sender<Vec<Vec<u8>>>);

impl Drop for Last {
    fn drop(&mut self) {
        drop(std::hint::black_box(vec![1_u8; 1000]));
        // If the receiver is gone, the block is dropped.
        let _ = self.0.send(plant(1));
    }
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Runs 200 threads that allocate in the destructors of their thread-local values.
pub(crate) fn destructors(path: &Path) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..200)
        .map(|_| {
            let sender = sender.clone();
            thread::spawn(move || LAST.try_with(|last| last.replace(Some(Last(sender)))).is_ok())
        })
        .collect();
    drop(sender);
    for thread in threads {
        let was_set = thread.join().map_err(|_| "a thread panicked")?;
        if !was_set {
            return Err("a thread had no values any more".into());
        }
    }
    let kept: Vec<_> = receiver.iter().collect();
    save(path)?;
    drop(kept);
    Ok(())
}
