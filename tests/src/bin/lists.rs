//! A heap of many small blocks: a thousand lists in one static, whose entries have a name each.
//! `lists BLOCKS REPORT` saves a report, and prints for how long a thread that allocates had to
//! wait meanwhile.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

dmd::global_allocator!();

/// An entry of a list. With its name it takes 208 usable bytes of glibc's.
struct Entry {
    number: u64,
    name: Box<[u8; 184]>,
    next: Option<Box<Entry>>,
}

static LISTS: Mutex<Vec<Option<Box<Entry>>>> = Mutex::new(Vec::new());

const COUNT: u64 = 1000;

/// The longest time between two allocations of a thread that does nothing else, in microseconds.
static LONGEST: AtomicU64 = AtomicU64::new(0);

fn list(length: u64) -> Option<Box<Entry>> {
    (0..length).fold(None, |next, number| {
        let mut name = Box::new([0; 184]);
        name[..8].copy_from_slice(&number.to_le_bytes());
        Some(Box::new(Entry { number, name, next }))
    })
}

fn allocate_forever() {
    let mut last = Instant::now();
    loop {
        black_box(Box::new([0_u64; 4]));
        let now = Instant::now();
        LONGEST.fetch_max(u64::try_from((now - last).as_micros()).unwrap_or(u64::MAX), Relaxed);
        last = now;
    }
}

/// Returns a sum over all entries, which depends on each field.
fn sum() -> u64 {
    let lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sum = 0_u64;
    for list in lists.iter() {
        let mut next = list.as_ref();
        while let Some(entry) = next {
            sum = sum.wrapping_add(entry.number ^ u64::from(entry.name[0]));
            next = entry.next.as_ref();
        }
    }
    sum
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut words = std::env::args_os().skip(1);
    let blocks: u64 = words.next().and_then(|word| word.to_str()?.parse().ok()).ok_or("BLOCKS")?;
    let report = PathBuf::from(words.next().ok_or("REPORT")?);
    let lists = (0..COUNT).map(|_| list(blocks / 2 / COUNT)).collect();
    *LISTS.lock().unwrap_or_else(PoisonError::into_inner) = lists;
    thread::spawn(allocate_forever);
    thread::sleep(Duration::from_secs(1));
    let usual = LONGEST.swap(0, Relaxed);
    let begun = Instant::now();
    let snapshot = memreport::snapshot();
    let (took, longest) = (begun.elapsed().as_secs_f64(), LONGEST.swap(0, Relaxed));
    let begun = Instant::now();
    snapshot.save(report)?;
    let saved = begun.elapsed().as_secs_f64();
    writeln!(io::stdout(), "{took} {saved} {usual} {longest} {}", sum())?;
    // The lists are too long to be dropped by recursion.
    process::exit(0)
}
