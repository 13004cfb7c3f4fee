//! Makes `argv[1]` live blocks, and prints the seconds that a snapshot and its dump take.

use std::error::Error;
use std::io::{self, Write};
use std::time::Instant;

dmd::global_allocator!();

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let count: usize = std::env::args().nth(1).ok_or("how many blocks?")?.parse()?;
    // Few kinds, as in programs with so many blocks.
    let blocks: Vec<Vec<u8>> =
        (0..count).map(|number| Vec::with_capacity(8 + number % 5 * 8)).collect();
    let path = std::env::temp_dir().join(format!("workload-dump-{}.json", std::process::id()));
    let begin = Instant::now();
    let snapshot = memreport::snapshot();
    let dump = dmd::Dump::of(&snapshot).ok_or("DMD sleeps: set $DMD")?;
    dump.save(&path)?;
    let seconds = begin.elapsed().as_secs_f64();
    drop(blocks);
    std::fs::remove_file(&path)?;
    Ok(writeln!(io::stdout(), "{seconds:.4}")?)
}
