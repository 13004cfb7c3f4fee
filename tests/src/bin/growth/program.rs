//! Programs whose resident memory grows for a known reason, with snapshots before, between and
//! after.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use crate::mapping::Mapping;

/// The growth in bytes.
const GROWTH: usize = 48 << 20;

/// The size of small blocks: every allocator puts many of them on a page.
const SMALL: usize = 256;

/// One in this many small blocks survives a spike. It pins its page, so that no allocator can
/// release it.
const SURVIVORS: usize = 16;

static CACHE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static INDEX: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/cache", CACHE, "The entries of earlier requests.");
memreport::reporter!("explicit/index", INDEX, "The entries to search.");

/// A writer of numbered snapshots.
struct Snapshots {
    folder: PathBuf,
    number: usize,
}

impl Snapshots {
    fn take(&mut self, moment: &'static str) -> io::Result<()> {
        self.number += 1;
        let file = self.folder.join(format!("{}.json", self.number));
        memreport::Collector::default().moment(moment).snapshot().save(file)
    }
}

/// Grows for the reason in the first argument, and writes snapshots to the folder in the second.
#[must_use]
pub(crate) fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(reason), Some(folder)) = (arguments.next(), arguments.next()) else {
        return ExitCode::from(2);
    };
    let mut snapshots = Snapshots { folder: folder.into(), number: 0 };
    // A program does some other work as well.
    fill(&INDEX, 8 << 20, 4096);
    let done = match reason.as_str() {
        "leak" => leak(&mut snapshots),
        "cache" => cache(&mut snapshots),
        "retention" => retention(&mut snapshots),
        "files" => files(&mut snapshots),
        "quiet" => quiet(&mut snapshots),
        _ => return ExitCode::from(2),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Adds blocks of that size to a list.
fn fill(list: &Mutex<Vec<Vec<u8>>>, bytes: usize, block: usize) {
    let mut list = list.lock().expect("nobody panics");
    list.extend((0..bytes / block).map(|_| vec![1; block]));
}

/// Leaks unreachable, unreported blocks.
fn leak(snapshots: &mut Snapshots) -> io::Result<()> {
    snapshots.take("before")?;
    for part in 0..GROWTH / 4096 {
        Box::leak(vec![1_u8; 4096].into_boxed_slice());
        if part == GROWTH / 4096 / 2 {
            snapshots.take("between")?;
        }
    }
    snapshots.take("after")
}

fn cache(snapshots: &mut Snapshots) -> io::Result<()> {
    snapshots.take("before")?;
    fill(&CACHE, GROWTH, 4096);
    snapshots.take("after")
}

/// Keeps as much alive after the spike as before it.
fn retention(snapshots: &mut Snapshots) -> io::Result<()> {
    fill(&CACHE, GROWTH / SURVIVORS, 64 << 10);
    snapshots.take("before")?;
    let mut blocks: Vec<Option<Vec<u8>>> = Vec::new();
    blocks.extend((0..GROWTH / SMALL).map(|_| Some(vec![1; SMALL])));
    snapshots.take("at the peak")?;
    let mut list = CACHE.lock().expect("nobody panics");
    list.clear();
    for (number, block) in blocks.iter_mut().enumerate() {
        let block = block.take();
        if number % SURVIVORS == 0 {
            list.extend(block);
        }
    }
    // Both lists have their exact capacity, so that the figures count only the blocks.
    list.shrink_to_fit();
    drop(list);
    drop(blocks);
    snapshots.take("after")
}

/// Maps a file page by page.
fn files(snapshots: &mut Snapshots) -> io::Result<()> {
    let path = snapshots.folder.join("big.data");
    write(&path)?;
    let file = File::open(&path)?;
    snapshots.take("before")?;
    let mapping = Mapping::new(&file, GROWTH)?;
    // A page becomes resident when it is read.
    let sum: u64 = mapping.pages().map(u64::from).sum();
    snapshots.take("after")?;
    fs::remove_file(path)?;
    if sum == (GROWTH / 4096) as u64 { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

fn write(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    let part = vec![1; 1 << 20];
    (0..GROWTH / part.len()).try_for_each(|_| file.write_all(&part))
}

/// Works, and frees everything.
fn quiet(snapshots: &mut Snapshots) -> io::Result<()> {
    let work = || {
        let words: Vec<String> = (0..1000).map(|number| format!("word {number}")).collect();
        words.iter().map(String::len).sum::<usize>()
    };
    work();
    snapshots.take("before")?;
    if (0..100).map(|_| work()).max() == Some(0) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    snapshots.take("after")
}
