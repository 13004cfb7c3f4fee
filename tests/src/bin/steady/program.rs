//! The program, on whichever allocator.

use std::hint::black_box;
use std::io::Write as _;

use memreport_workload::Numbers;

/// The error of a run.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const LEAST: usize = 16;
const MOST: usize = 4096;

/// Runs the command line.
pub(crate) fn run() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [megabytes, allocations, points] = &words[..] else {
        return Err("steady MEGABYTES ALLOCATIONS POINTS".into());
    };
    let [megabytes, allocations, points]: [usize; 3] =
        [megabytes.parse()?, allocations.parse()?, points.parse()?];
    let mut numbers = Numbers::new(7);
    let mut block = || black_box(vec![1_u8; LEAST + numbers.index(MOST - LEAST + 1)]);
    let mut blocks: Vec<_> = (0..megabytes * 1_000_000 / (MOST / 2)).map(|_| block()).collect();
    let mut places = Numbers::new(8);
    print(0)?;
    for point in 1..=points {
        for _ in 0..allocations / points {
            let place = places.index(blocks.len());
            blocks[place] = block();
        }
        print(point * (allocations / points))?;
    }
    Ok(())
}

/// Prints a point.
fn print(allocations: usize) -> Result<(), Failure> {
    let snapshot = memreport::snapshot();
    let amount = |path: &str| {
        let found = snapshot.reports.iter().filter(|report| report.path == path);
        found.map(|report| report.amount).sum::<i64>()
    };
    let (tables, resident) = (amount("explicit/dmd/tables"), amount("resident"));
    Ok(writeln!(std::io::stdout(), "{allocations} {tables} {resident}")?)
}
