//! A served program that counts its own collections, until its standard input ends: the numbers in
//! a store show whether a snapshot is missing or there twice.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

dmd::global_allocator!();

static COLLECTIONS: AtomicI64 = AtomicI64::new(0);
memreport::reporter!(counted);

fn counted(reports: &mut memreport::Reports<'_>) {
    let number = COLLECTIONS.fetch_add(1, Ordering::Relaxed) + 1;
    reports.add(memreport::Report::count("shipped/collections", number, "The collections."));
}

static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());
memreport::reporter!("explicit/words", WORDS, "The words.");

fn main() -> io::Result<()> {
    if let Ok(mut words) = WORDS.lock() {
        words.extend((0..20_000).map(|number| format!("word number {number}")));
    }
    let unreported = vec![vec![1_u8; 10_000]; 50];
    memreport::serve()?;
    let _ = io::stdin().read(&mut [0])?;
    drop(unreported);
    Ok(())
}
