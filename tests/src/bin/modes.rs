//! A program whose blocks are all known, for every mode of the tracker: `modes CASE REPORT` saves a
//! report.

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use dmd::testing::unclassified;
use memreport::{MallocSizeOf, Snapshot};

dmd::global_allocator!();

/// The exactly reported blocks.
#[derive(Default, MallocSizeOf)]
struct Kept {
    lists: Vec<Vec<u8>>,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

memreport::reporter!("explicit/modes/kept", KEPT, "Lists that are kept.");

/// Returns blocks of three sizes, `count` of each.
#[inline(never)]
fn three_sizes(count: usize) -> Vec<Vec<u8>> {
    let sizes = [16, 128, 1024];
    let mut lists = Vec::with_capacity(3 * count);
    for size in sizes {
        lists.extend((0..count).map(|_| black_box(vec![1_u8; size])));
    }
    lists
}

/// Makes short-lived blocks: 500 of 300 bytes, and one that grows from 200 to 400 and 800.
#[inline(never)]
fn short_lived() {
    for _ in 0..500 {
        drop(black_box(vec![1_u8; 300]));
    }
    let mut growing = black_box(Vec::<u8>::with_capacity(200));
    growing.reserve_exact(400);
    black_box(&mut growing).reserve_exact(800);
    drop(black_box(growing));
}

/// Returns a block that points at another.
#[inline(never)]
fn pointing() -> Box<[usize; 100]> {
    let target = Box::leak(black_box(Box::new([0xfeed_f00d_usize; 11])));
    let mut words = black_box(Box::new([0_usize; 100]));
    words[7] = target.as_ptr().addr();
    words[99] = usize::MAX;
    words
}

/// Allocates all memory, a megabyte at a time, and frees sixteen of it: those that it took first.
fn exhaust() -> Vec<Vec<u8>> {
    const MEGABYTE: usize = 1 << 20;
    let mut taken = Vec::with_capacity(1 << 16);
    loop {
        let mut block = Vec::new();
        if taken.len() == taken.capacity() || block.try_reserve_exact(MEGABYTE).is_err() {
            break;
        }
        taken.push(block);
    }
    taken.drain(..taken.len().min(16));
    taken
}

fn keep(lists: Vec<Vec<u8>>) {
    KEPT.lock().expect("nobody panics").get_or_insert_default().lists.extend(lists);
}

/// Saves the snapshot, and prints heap-unclassified both by subtraction and by blocks.
fn save(snapshot: &Snapshot, report: &Path) -> std::io::Result<()> {
    snapshot.save(report)?;
    let mut out = std::io::stdout();
    match unclassified(snapshot) {
        None => writeln!(out, "asleep"),
        Some(found) => writeln!(out, "{} {}", found.bytes, found.summary.unclassified()),
    }
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (case, report) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let report = Path::new(&report);
    match case.as_str() {
        "three-sizes" => keep(three_sizes(10_000)),
        "short-lived" => short_lived(),
        "pointing" => drop(black_box(Box::leak(pointing()))),
        "sample" => keep(three_sizes(100_000)),
        "balanced" => drop(black_box(three_sizes(100_000))),
        "exhausted" => {
            keep(three_sizes(10_000));
            keep(exhaust());
        }
        "on-and-off" => return on_and_off(report),
        "times-later" => return times_later(report),
        _ => return Err(std::io::Error::other("no such case")),
    }
    save(&memreport::snapshot(), report)
}

/// Makes blocks of 500 bytes before their times are kept, and of 700 bytes later. Then replaces all
/// of these many times, so that whatever a free leaves behind would add up.
fn times_later(report: &Path) -> std::io::Result<()> {
    let blocks = |size: usize| (0..1000).map(|_| black_box(vec![1_u8; size])).collect::<Vec<_>>();
    let mut before = blocks(500);
    dmd::start("--times=yes".parse().map_err(std::io::Error::other)?)
        .map_err(std::io::Error::other)?;
    before.truncate(400);
    let mut later = blocks(700);
    save(&memreport::snapshot(), report)?;
    for _ in 0..200 {
        later = blocks(700);
    }
    save(&memreport::snapshot(), &report.with_extension("replaced"))?;
    black_box((before, later));
    Ok(())
}

/// Makes blocks before, during and after tracking; of each, some are reported and some are freed.
fn on_and_off(report: &Path) -> std::io::Result<()> {
    let before = black_box(vec![1_u8; 5000]);
    keep(vec![vec![2_u8; 6000]]);
    let given_back = black_box(vec![3_u8; 7000]);
    save(&memreport::snapshot(), &report.with_extension("asleep"))?;
    dmd::start("--mode=dark-matter".parse().map_err(std::io::Error::other)?)
        .map_err(std::io::Error::other)?;
    let during = black_box(vec![4_u8; 8000]);
    keep(vec![vec![5_u8; 9000]]);
    drop(given_back);
    let short = black_box(vec![6_u8; 10_000]);
    save(&memreport::snapshot(), report)?;
    dmd::stop();
    drop(short);
    let after = black_box(vec![7_u8; 11_000]);
    keep(vec![vec![8_u8; 12_000]]);
    save(&memreport::snapshot(), &report.with_extension("stopped"))?;
    dmd::start(dmd::Options::default()).map_err(std::io::Error::other)?;
    let again = black_box(vec![9_u8; 13_000]);
    save(&memreport::snapshot(), &report.with_extension("again"))?;
    black_box((before, during, after, again));
    Ok(())
}
