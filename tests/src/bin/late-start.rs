//! A program whose tracking starts late: `late-start OPTIONS REPORT` allocates, starts the tracker
//! with these options of `$DMD`, allocates more, and saves a report.

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use memreport::MallocSizeOf;

dmd::global_allocator!();

/// The reported blocks.
#[derive(Default, MallocSizeOf)]
struct Kept {
    lists: Vec<Vec<u8>>,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

memreport::reporter!("explicit/late/kept", KEPT, "Lists that are kept.");

/// Returns unreported lists of `size` bytes.
#[inline(never)]
fn lists(count: usize, size: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| black_box(vec![1_u8; size])).collect()
}

fn keep(lists: Vec<Vec<u8>>) {
    KEPT.lock().expect("nobody panics").get_or_insert_default().lists.extend(lists);
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (options, report) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let before = lists(1000, 1000);
    keep(lists(200, 700));
    dmd::start(options.parse().map_err(std::io::Error::other)?).map_err(std::io::Error::other)?;
    let unreported = lists(500, 2000);
    keep(lists(1000, 1500));
    let snapshot = memreport::snapshot();
    snapshot.save(Path::new(&report))?;
    let found = dmd::testing::unclassified(&snapshot).map_or(0, |found| found.bytes);
    writeln!(std::io::stdout(), "{found}")?;
    black_box((before, unreported));
    Ok(())
}
