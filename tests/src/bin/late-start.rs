//! A program whose tracking starts late: `late-start OPTIONS REPORT` allocates, starts the tracker
//! with these options of `$DMD`, allocates more, and saves a report.

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use bytes::Bytes;
use memreport::MallocSizeOf;

dmd::global_allocator!();

/// The reported blocks.
#[derive(Default, MallocSizeOf)]
struct Kept {
    lists: Vec<Vec<u8>>,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

memreport::reporter!("explicit/late/kept", KEPT, "Lists that are kept.");

static SLICES: Mutex<Vec<Bytes>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/late/slices", SLICES, "Slices, each a block of its own.");

/// Returns unreported lists of `size` bytes.
#[inline(never)]
fn lists(count: usize, size: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| black_box(vec![1_u8; size])).collect()
}

fn keep(lists: Vec<Vec<u8>>) {
    KEPT.lock().expect("nobody panics").get_or_insert_default().lists.extend(lists);
}

/// Inserts `count` slices, each before one that is there, so that those from before tracking and
/// later ones take turns.
fn insert_slices(count: usize, size: usize) {
    let mut slices = SLICES.lock().expect("nobody panics");
    for place in 0..count {
        let at = slices.len().min(2 * place);
        slices.insert(at, Bytes::from(vec![1; size]));
    }
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (options, report) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let before = lists(1000, 1000);
    keep(lists(200, 700));
    SLICES.lock().expect("nobody panics").reserve_exact(200);
    insert_slices(100, 300);
    dmd::start(options.parse().map_err(std::io::Error::other)?).map_err(std::io::Error::other)?;
    let unreported = lists(500, 2000);
    keep(lists(1000, 1500));
    insert_slices(50, 400);
    let snapshot = memreport::snapshot();
    snapshot.save(Path::new(&report))?;
    let found = dmd::testing::unclassified(&snapshot).map_or(0, |found| found.bytes);
    let slices = snapshot.reports.iter().filter(|of| of.path.starts_with("explicit/late/slices"));
    writeln!(std::io::stdout(), "{found} {}", slices.map(|of| of.amount).sum::<i64>())?;
    black_box((before, unreported));
    Ok(())
}
