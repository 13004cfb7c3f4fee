//! Programs whose resident memory grows for a known reason, with a snapshot from before, one from after, and some between.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use crate::mapping::Mapping;

/// By how many bytes it grows.
const GROWTH: usize = 48 << 20;

/// Blocks are of this size where there are many: a class of every allocator, with many blocks in each of its pages.
const SMALL: usize = 256;

/// Of small blocks one in so many survives a spike. It pins the page that it is on, so that no allocator can give it back.
const SURVIVORS: usize = 16;

static CACHE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static INDEX: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/cache", CACHE, "What was asked for before.");
memreport::reporter!("explicit/index", INDEX, "What can be asked for.");

/// Where snapshots go.
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

/// Grows for the reason that the first argument names, and leaves snapshots in the folder that the second one does.
#[must_use]
pub(crate) fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(reason), Some(folder)) = (arguments.next(), arguments.next()) else {
        return ExitCode::from(2);
    };
    let mut snapshots = Snapshots { folder: folder.into(), number: 0 };
    // A program has something to do as well.
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

/// Nobody can reach what is made here, and nobody reports it.
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

/// As much is alive after the spike as was before it.
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
    // Both lists as big as what is in them: the figures are to be those of the blocks.
    list.shrink_to_fit();
    drop(list);
    drop(blocks);
    snapshots.take("after")
}

/// A file that is mapped, page by page.
fn files(snapshots: &mut Snapshots) -> io::Result<()> {
    let path = snapshots.folder.join("big.data");
    write(&path)?;
    let file = File::open(&path)?;
    snapshots.take("before")?;
    let mapping = Mapping::new(&file, GROWTH)?;
    // Every page has to be read to be resident.
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

/// Works, and gives all back.
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
