//! A quiet program of known heap: one list is reported, one is not.

use std::sync::Mutex;

dmd::global_allocator!();

static WORDS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/words", WORDS, "The words.");

fn main() -> std::io::Result<()> {
    WORDS.lock().expect("nobody panics").extend(0..1000);
    let hidden = vec![0_u8; 5000];
    let snapshot = memreport::snapshot();
    let path = std::env::args().nth(1).unwrap_or_else(|| "books.json".to_owned());
    snapshot.save(path)?;
    drop(hidden);
    Ok(())
}
