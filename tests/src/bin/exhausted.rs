//! Runs out of one resource after another, over and over: `exhausted SECONDS DISK [alone]`.
//!
//! `DISK` is a folder on a small disk, or `-`. With `alone` it runs out of memory too, which no
//! snapshot for a client may meet: Rust ends a program whose allocation fails. The program prints
//! a line when it serves. Then, after it has warmed up and after each quarter of the time, when it
//! holds nothing, it returns free memory to the system, prints a line, and waits for one.
#![expect(unsafe_code, reason = "lowers its own limits, and reserves addresses")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use dmd::record::Recorder;
use memreport::serve::Server;

dmd::global_allocator!();

/// The threads of a round, and how many live at once.
const THREADS: usize = 2000;
const AT_ONCE: usize = 50;

/// The time until every cache has its size.
const WARM_UP: Duration = Duration::from_secs(120);

/// The pauses after it.
const QUARTERS: u32 = 4;

/// Blocks that are big enough for a sample to have most of them: more events than the queue of a
/// recording has room for.
const BIG_BLOCKS: usize = 100_000;
const BIG_BLOCK: usize = 1 << 20;

/// The open files that the program may have.
const DESCRIPTORS: libc::rlim_t = 256;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, disk, is_alone) = match &words[..] {
        [seconds, disk] => (seconds, disk, false),
        [seconds, disk, word] if word == "alone" => (seconds, disk, true),
        _ => return Err("exhausted SECONDS DISK [alone]".into()),
    };
    let (seconds, disk) = (Duration::try_from_secs_f64(seconds.parse()?)?, PathBuf::from(disk));
    set_limit(libc::RLIMIT_NOFILE, DESCRIPTORS)?;
    let _serving = Server::default().name("exhausted").start()?;
    writeln!(io::stdout(), "serving")?;
    fill_queue()?;
    rounds(WARM_UP, &disk, is_alone)?;
    pause("warm")?;
    let mut done = 0;
    for _ in 0..QUARTERS {
        done += rounds(seconds / QUARTERS, &disk, is_alone)?;
        pause(&format!("{} threads in {done} rounds", done * THREADS))?;
    }
    Ok(())
}

/// Records until the queue of events has gone around: each of its pages is resident from then on.
/// The recordings of the rounds are short, and would reach one page after the other for hours.
fn fill_queue() -> Result<(), Failure> {
    let path = temporary();
    let recording = Recorder::default().start(&path)?;
    for _ in 0..BIG_BLOCKS {
        drop(black_box(Vec::<u8>::with_capacity(BIG_BLOCK)));
    }
    recording.finish()?;
    Ok(fs::remove_file(&path)?)
}

fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("exhausted-{}", std::process::id()))
}

/// Runs rounds for this time, and returns their number.
fn rounds(time: Duration, disk: &Path, is_alone: bool) -> Result<usize, Failure> {
    // The kernel's clock, which does not jump: the one of the library may be replaced.
    let end = uptime()? + time;
    let mut rounds = 0;
    while uptime()? < end {
        round(disk, is_alone)?;
        rounds += 1;
    }
    Ok(rounds)
}

/// Returns free memory to the system, prints a line, and waits for one.
///
/// The free memory that a heap keeps depends on the threads that happened to share an arena.
fn pause(line: &str) -> Result<(), Failure> {
    // SAFETY: touches free memory only.
    unsafe { libc::malloc_trim(0) };
    writeln!(io::stdout(), "{line}")?;
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn uptime() -> Result<Duration, Failure> {
    let text = fs::read_to_string("/proc/uptime")?;
    let seconds = text.split(' ').next().ok_or("no uptime")?;
    Ok(Duration::try_from_secs_f64(seconds.parse()?)?)
}

fn round(disk: &Path, is_alone: bool) -> Result<(), Failure> {
    threads()?;
    small_stacks()?;
    descriptors()?;
    if disk != Path::new("-") {
        full_disk(disk)?;
    }
    if is_alone {
        memory()?;
    }
    addresses()
}

/// Threads that allocate, send a block to another, and end.
fn threads() -> Result<(), Failure> {
    let (sender, receiver) = channel();
    for _ in 0..THREADS / AT_ONCE {
        std::thread::scope(|scope| {
            for number in 0..AT_ONCE {
                let sender = sender.clone();
                scope.spawn(move || {
                    let own: Vec<String> =
                        (0..20).map(|word| format!("{number} and {word}")).collect();
                    // The receiver lives.
                    let _ = sender.send(black_box(own));
                });
            }
        });
        receiver.try_iter().for_each(drop);
    }
    Ok(())
}

/// Threads with the smallest stacks that the system allows.
fn small_stacks() -> Result<(), Failure> {
    for _ in 0..50 {
        let thread = std::thread::Builder::new().stack_size(16 << 10);
        let made = thread.spawn(|| black_box(vec![vec![1_u8; 100]; 20]).len())?;
        made.join().map_err(|_| "a thread has panicked")?;
    }
    Ok(())
}

/// Snapshots and recordings while no file can be opened.
fn descriptors() -> Result<(), Failure> {
    let mut open = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => break,
            Err(error) => return Err(error.into()),
        }
    }
    // They may work: the server closes a client's descriptor now and then.
    let path = temporary();
    if memreport::snapshot().save(&path).is_ok() {
        fs::remove_file(&path)?;
    }
    if let Ok(recording) = Recorder::default().start(&path) {
        drop(open);
        recording.finish()?;
        fs::remove_file(&path)?;
    }
    Ok(())
}

/// Snapshots and recordings onto a disk without room.
fn full_disk(disk: &Path) -> Result<(), Failure> {
    let filler = disk.join("filler");
    let mut file = File::create(&filler)?;
    let block = vec![7; 4096];
    while file.write_all(&block).is_ok() {}
    drop(file);
    let saved = memreport::snapshot().save(disk.join("report.json"));
    let recorded = Recorder::default().start(disk.join("recording")).map(|recording| {
        black_box(vec![vec![0_u8; 1000]; 1000]);
        recording.finish().is_ok()
    });
    if saved.is_ok() {
        return Err("a full disk takes a snapshot".into());
    }
    // A recording may begin, since its first bytes stay in memory; then it cannot end well.
    if recorded.is_ok_and(|finished| finished) {
        return Err("a full disk takes a recording".into());
    }
    fs::read_dir(disk)?.try_for_each(|entry| fs::remove_file(entry?.path()))?;
    Ok(())
}

/// Allocations until no address space is left, and a snapshot with little.
fn memory() -> Result<(), Failure> {
    let used = address_space()?;
    let before = set_limit(libc::RLIMIT_AS, used + (48 << 20))?;
    let mut blocks: Vec<Vec<u8>> = Vec::with_capacity(100_000);
    while blocks.len() < blocks.capacity() {
        let mut block = Vec::new();
        if block.try_reserve_exact(1000 * (1 + blocks.len() % 50)).is_err() {
            break;
        }
        blocks.push(block);
    }
    let is_full = blocks.len() < blocks.capacity();
    drop(blocks);
    black_box(memreport::snapshot());
    set_limit(libc::RLIMIT_AS, before)?;
    if is_full { Ok(()) } else { Err("the limit of the address space did not end it".into()) }
}

/// A reservation of 4 TiB, and a vector that no machine has room for.
fn addresses() -> Result<(), Failure> {
    const BYTES: usize = 4 << 40;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses the range.
    let reserved = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, libc::PROT_NONE, kind, -1, 0) };
    if reserved == libc::MAP_FAILED {
        return Err(io::Error::last_os_error().into());
    }
    black_box(memreport::snapshot());
    if Vec::<u8>::new().try_reserve_exact(1 << 46).is_ok() {
        return Err("there are 64 TiB of memory".into());
    }
    // SAFETY: it was reserved above, and nothing is in it.
    unsafe { libc::munmap(reserved, BYTES) };
    Ok(())
}

/// Sets the limit of a resource, and returns the one before.
fn set_limit(resource: libc::__rlimit_resource_t, limit: u64) -> io::Result<u64> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the limits.
    if unsafe { libc::getrlimit(resource, &raw mut limits) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let before = limits.rlim_cur;
    limits.rlim_cur = limit;
    // SAFETY: reads the limits.
    if unsafe { libc::setrlimit(resource, &raw const limits) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(before)
}

/// Returns the bytes of the process's address space.
fn address_space() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').next().ok_or("no pages")?.parse()?;
    Ok(pages * 4096)
}
