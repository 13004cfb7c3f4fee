//! Fuzzes a target without a fuzzing engine: `memreport-fuzz TARGET SECONDS [SEED]`.
//!
//! Damaged copies of the seeds, without regard to coverage. The same seed makes the same inputs.

use std::fs;
use std::io::Write as _;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use memreport_fuzz::mutate::mutated;
use memreport_fuzz::seeds;
use memreport_fuzz::targets::{ALL, Target};
use rustix::process::{Resource, Rlimit, setrlimit};

/// The address space of the process. With the program itself and its stacks it leaves an input
/// less than 512 MiB.
const MEMORY: u64 = 512 << 20;

/// The longest time for an input.
const HANG: Duration = Duration::from_secs(10);

/// The number of inputs that ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "memreport-fuzz: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Failure> {
    const USAGE: &str = "usage: memreport-fuzz TARGET SECONDS [SEED]";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, seconds) = args.first().zip(args.get(1)).ok_or(USAGE)?;
    let names = || ALL.map(|target| target.name).join(", ");
    let target = ALL.into_iter().find(|target| target.name == name);
    let target = target.ok_or_else(|| format!("no target {name}; there are {}", names()))?;
    let seconds = Duration::try_from_secs_f64(seconds.parse()?)?;
    let seed = args.get(2).map_or(Ok(1), |seed| seed.parse())?;
    setrlimit(Resource::As, Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) })?;
    std::thread::spawn(watch);
    fuzz(target, seconds, seed)
}

/// Runs inputs until the time is over, or one fails.
fn fuzz(target: Target, seconds: Duration, seed: u64) -> Result<bool, Failure> {
    let inputs = seeds::read(&seeds::folder(target.name))?;
    let mut random = fastrand::Rng::with_seed(seed);
    // Kept until the end: a crash leaves the input that caused it.
    let last = std::env::temp_dir().join(format!("fuzz-{}-{}", target.name, std::process::id()));
    let end = Instant::now() + seconds;
    let mut out = std::io::stdout();
    while Instant::now() < end {
        let bytes = mutated(&inputs, &mut random);
        fs::write(&last, &bytes)?;
        if catch_unwind(|| (target.run)(&bytes)).is_err() {
            writeln!(out, "{}: the input {} panics", target.name, last.display())?;
            return Ok(false);
        }
        // Relaxed: a counter.
        ENDED.fetch_add(1, Relaxed);
    }
    fs::remove_file(&last)?;
    let count = ENDED.load(Relaxed);
    writeln!(out, "{}: {count} inputs from {} seeds, seed {seed}", target.name, inputs.len())?;
    Ok(true)
}

/// Ends the process if an input takes too long.
#[expect(clippy::print_stderr, reason = "the process ends")]
fn watch() {
    let mut before = None;
    loop {
        std::thread::sleep(HANG);
        // Relaxed: a counter.
        let ended = ENDED.load(Relaxed);
        if before == Some(ended) {
            eprintln!("an input takes longer than {} s", HANG.as_secs());
            std::process::abort();
        }
        before = Some(ended);
    }
}
