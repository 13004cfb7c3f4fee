//! A program whose reporters meet held locks: `contended folder=DIR [snapshots] [deaf]`.
//!
//! Four threads allocate and free, and each holds the lock of its table half of the time. The
//! server keeps snapshots at intervals. With `snapshots`, a thread of the program takes one after
//! the other; with `deaf`, one table stays locked. Prints the socket and the bytes that no reporter
//! reports, and ends with its standard input.

use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use memreport::MallocSizeOf;
use memreport::serve::Server;

dmd::global_allocator!();

/// Blocks in each table, and their size: the table of each thread has 16 MB.
const BLOCKS: usize = 4000;
const SIZE: usize = 4000;

/// The unreported blocks, each of 1 MiB and a bit.
const UNREPORTED: usize = 8;

/// The time for which a lock is held, and then not.
const HOLD: Duration = Duration::from_millis(1);

#[derive(Default, MallocSizeOf)]
struct Table {
    blocks: Vec<Vec<u8>>,
}

static TABLES: [Mutex<Table>; 4] = [const { Mutex::new(Table { blocks: Vec::new() }) }; 4];

memreport::reporter!("explicit/contended/first", TABLES[0], "The table of the first thread.");
memreport::reporter!("explicit/contended/second", TABLES[1], "The table of the second thread.");
memreport::reporter!("explicit/contended/third", TABLES[2], "The table of the third thread.");
memreport::reporter!("explicit/contended/fourth", TABLES[3], "The table of the fourth thread.");

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Replaces a few blocks of the table, holds its lock for a while, and pauses as long.
fn work(table: &Mutex<Table>) {
    let mut round = 0;
    while !IS_OVER.load(Relaxed) {
        let mut locked = table.lock().expect("nobody panics");
        for number in 0..4 {
            let at = (round * 4 + number) * 37 % BLOCKS;
            locked.blocks[at] = black_box(vec![1; SIZE]);
        }
        thread::sleep(HOLD);
        drop(locked);
        drop(black_box(vec![1_u8; SIZE]));
        thread::sleep(HOLD);
        round += 1;
    }
}

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let folder = words.iter().find_map(|word| word.strip_prefix("folder=")).unwrap_or(".");
    for table in &TABLES {
        let mut table = table.lock().expect("nobody panics");
        table.blocks = (0..BLOCKS).map(|_| black_box(vec![1; SIZE])).collect();
    }
    let unreported: Vec<Vec<u8>> = (0..UNREPORTED).map(|_| vec![1; (1 << 20) + 100]).collect();
    // The truth is what no table owns: this, and what the runtime has allocated before `main`.
    let own: usize = memreport::measure(&unreported).bytes;
    let server = Server::default().folder(folder).timeout(Duration::from_secs(1));
    let serving = server.keep_every(Duration::from_millis(20), 2).start()?;
    let deaf = has("deaf").then(|| TABLES[0].lock());
    let first = usize::from(deaf.is_some());
    let mut threads: Vec<_> =
        TABLES[first..].iter().map(|table| thread::spawn(move || work(table))).collect();
    if has("snapshots") {
        threads.push(thread::spawn(|| {
            while !IS_OVER.load(Relaxed) {
                drop(memreport::snapshot());
            }
        }));
    }
    let mut out = std::io::stdout();
    writeln!(out, "{} {own}", serving.socket().display())?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    IS_OVER.store(true, Relaxed);
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    black_box(unreported);
    Ok(())
}
