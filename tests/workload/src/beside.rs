//! Blocks and threads beside the work, which may make a tracker slower.

use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;

/// A block of a page, at the address of a page.
#[repr(align(4096))]
pub(crate) struct Page {
    _bytes: [u8; 4096],
}

/// Blocks or threads that live beside the work.
pub(crate) enum Beside {
    /// Blocks whose sizes allocators do not find by their usual formulas: a large one and one with
    /// a large alignment.
    UnusualBlocks { _large: Vec<u8>, _aligned: Box<Page> },
    /// Threads that have allocated and wait until the program ends.
    Threads,
}

impl Beside {
    /// Makes those that a word names: `blocks`, or a number of threads.
    pub(crate) fn new(word: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        if word == "blocks" {
            let large = black_box(Vec::with_capacity(1 << 20));
            return Ok(Beside::UnusualBlocks {
                _large: large,
                _aligned: Box::new(Page { _bytes: [1; 4096] }),
            });
        }
        let threads: usize = word.parse()?;
        // Each thread has its counters once it has allocated.
        let ready = Arc::new(Barrier::new(threads + 1));
        for _ in 0..threads {
            let ready = Arc::clone(&ready);
            thread::Builder::new().spawn(move || {
                drop(black_box(Box::new(1)));
                ready.wait();
                loop {
                    thread::park();
                }
            })?;
        }
        ready.wait();
        Ok(Beside::Threads)
    }
}
