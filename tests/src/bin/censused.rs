//! A program of known heap that differs in every grouping of a census.
//!
//! `FILE CENSUS` saves a snapshot and a census of the same blocks. `serve` opens a memreport
//! socket, and grows by a step for each byte of input.
#![expect(clippy::vec_box, reason = "boxes are what is counted")]

use std::io::{self, Read, Write};
use std::sync::Mutex;

use dmd::census::Breakdown;
use memreport::MallocSizeOf;

dmd::global_allocator!();

#[derive(MallocSizeOf)]
struct Index {
    pages: Vec<Box<[u8; 4000]>>,
}

static INDEX: Mutex<Option<Index>> = Mutex::new(None);
memreport::reporter!("explicit/censused/index", INDEX, "Pages.");

/// Reported twice.
static SHARED: Mutex<Vec<u8>> = Mutex::new(Vec::new());
memreport::reporter!("explicit/censused/shared", SHARED, "Bytes.");
memreport::reporter!("explicit/again", SHARED, "The same bytes.");

/// Unreported.
static DARK: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[inline(never)]
fn forget(count: usize) {
    let mut dark = DARK.lock().expect("nobody panics");
    for _ in 0..count {
        dark.push(vec![1; 3000]);
    }
}

fn build() {
    let mut pages = Vec::with_capacity(1000);
    pages.extend((0..1000).map(|_| Box::new([1; 4000])));
    *INDEX.lock().expect("nobody panics") = Some(Index { pages });
    *SHARED.lock().expect("nobody panics") = vec![1; 70_000];
    DARK.lock().expect("nobody panics").reserve_exact(10_000);
    forget(500);
    let import = || {
        memreport::scope!("import");
        forget(200);
    };
    let thread = std::thread::Builder::new().name("importer".into());
    thread.spawn(import).expect("there are threads").join().expect("it does not panic");
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    build();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, census, breakdown] = &words[..] else { return serve() };
    let breakdown: Breakdown = breakdown.parse()?;
    let snapshot = memreport::snapshot();
    snapshot.save(file)?;
    let dump = dmd::Dump::of(&snapshot).ok_or("DMD sleeps: set $DMD")?;
    let taken = dump.census(&breakdown);
    let all = taken.root().amount;
    let summary = dump.summary();
    let sum = |of: fn(&dmd::Sum) -> usize| {
        [summary.unreported, summary.once, summary.twice].iter().map(of).sum::<usize>()
    };
    assert_eq!(
        usize::try_from(all.sampled_bytes)?,
        sum(|sum| sum.bytes),
        "the dump has other bytes"
    );
    assert_eq!(
        usize::try_from(all.sampled_count)?,
        sum(|sum| sum.blocks),
        "the dump has other blocks"
    );
    taken.write_json(&mut std::fs::File::create(census)?)?;
    // A second census has the blocks of the program, and none of the first census.
    drop((taken, snapshot));
    let again = dmd::take_census(&breakdown).ok_or("DMD sleeps: set $DMD")?;
    let more = again.root().amount.sampled_bytes - all.sampled_bytes;
    assert!((0..10_000).contains(&more), "{more} bytes more than before");
    Ok(())
}

fn serve() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    memreport::serve()?;
    let mut out = io::stdout();
    writeln!(out, "{}", std::process::id())?;
    out.flush()?;
    let mut step = [0; 1];
    while io::stdin().read(&mut step)? == 1 {
        forget(1000);
        writeln!(out, "grown")?;
        out.flush()?;
    }
    Ok(())
}
