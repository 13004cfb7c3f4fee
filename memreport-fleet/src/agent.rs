//! The agent of a host: takes snapshots of its served programs, and ships them to a store.
//!
//! ```text
//! programs ──collect──▶ pending/ ──batch──▶ ready/ ──ship──▶ store
//! ```
//!
//! A snapshot is on disk before it counts as taken. A batch is made of pending snapshots, appears
//! in `ready/` at once, and has the same names and bytes whenever it is made of the same snapshots.
//! Nothing of it is shipped before its pending snapshots are removed. So a file that is shipped
//! twice, because the agent was killed in between, replaces itself.

mod batch;
mod collect;
mod metrics;
mod process;
mod serve;
mod ship;
mod spool;
mod usage;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use about_memory::Failure;

use crate::resource::Resource;
use crate::store::Store;
use collect::Collector;
use metrics::Metrics;
use spool::Spool;

/// The settings of an agent.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time between two snapshots of a program.
    pub every: Duration,
    /// The most time that a program may spend on snapshots, as a share of time.
    pub most_share: f64,
    /// The time that a program may take to answer.
    pub timeout: Duration,
    /// Every such snapshot has a dump of the heap too, where a tracker runs; 0 for none.
    pub dump_every: u32,
    /// The time between two batches.
    pub batch: Duration,
    /// The folder of files that are not shipped yet.
    pub spool: PathBuf,
    /// The most bytes in that folder.
    pub spool_limit: u64,
    /// The address of the agent's own metrics.
    pub metrics: Option<SocketAddr>,
    /// Attributes of all programs that do not state others.
    pub resource: Resource,
    /// The folders to look for sockets in; by default those of all users that this one may ask.
    pub sockets: Vec<PathBuf>,
    /// True if reports leave out private words.
    pub anonymize: bool,
    /// True if each snapshot is a line of the notes.
    pub verbose: bool,
    /// Stop after this many rounds.
    pub rounds: Option<u64>,
}

/// The time between two looks at the signal to stop.
const TICK: Duration = Duration::from_millis(100);

/// Runs an agent until `stop` is set or its rounds are over.
///
/// # Errors
///
/// The spool cannot be used, or another agent uses it.
pub fn run(
    options: &Options,
    store: Store,
    stop: &Arc<AtomicBool>,
    notes: &mut dyn Write,
) -> Result<(), Failure> {
    let metrics = Arc::new(Metrics::default());
    let spool = Arc::new(Spool::open(&options.spool, options.spool_limit)?);
    spool.reconcile()?;
    if let Some(address) = options.metrics {
        let address = serve::start(address, Arc::clone(&metrics), Arc::clone(&spool))?;
        writeln!(notes, "metrics are at http://{address}/metrics")?;
    }
    let done = Arc::new(AtomicBool::new(false));
    let (sender, reasons) = mpsc::channel();
    let shipper = {
        let (spool, metrics, done) = (Arc::clone(&spool), Arc::clone(&metrics), Arc::clone(&done));
        thread::Builder::new()
            .name("shipper".to_owned())
            .spawn(move || ship::run(&spool, &store, &metrics, &done, &sender))?
    };
    let result = collect_and_batch(
        options,
        &spool,
        &metrics,
        stop,
        &mut Notes { out: notes, reasons: &reasons },
    );
    done.store(true, Ordering::Release);
    let _ = shipper.join();
    Notes { out: notes, reasons: &reasons }.write_reasons()?;
    let left = spool.used();
    if left > 0 {
        writeln!(
            notes,
            "{left} bytes are not shipped yet; they wait in {}",
            options.spool.display()
        )?;
    }
    result
}

/// The notes of the agent, with the reasons for which files are not shipped.
struct Notes<'n> {
    out: &'n mut dyn Write,
    reasons: &'n Receiver<String>,
}

impl Notes<'_> {
    fn write_reasons(&mut self) -> io::Result<()> {
        for reason in self.reasons.try_iter() {
            let reason = reason.lines().collect::<Vec<_>>().join(" ");
            writeln!(self.out, "nothing can be shipped, which is tried again: {reason}")?;
        }
        Ok(())
    }
}

/// Takes snapshots and makes batches until the end, and then batches of what is pending.
fn collect_and_batch(
    options: &Options,
    spool: &Spool,
    metrics: &Metrics,
    stop: &AtomicBool,
    notes: &mut Notes<'_>,
) -> Result<(), Failure> {
    let mut collector = Collector::new(options);
    let (mut next_round, mut next_batch) = (Instant::now(), Instant::now() + options.batch);
    let mut rounds = 0;
    while !stop.load(Ordering::Acquire) && options.rounds.is_none_or(|most| rounds < most) {
        let now = Instant::now();
        if now >= next_round {
            collector.round(spool, metrics, stop, notes.out)?;
            rounds += 1;
            // A round that took longer than the interval is not made up for.
            next_round = (next_round + options.every).max(Instant::now());
        }
        if now >= next_batch || spool.pending_bytes() > batch::MOST {
            batch::make(spool, metrics, notes.out)?;
            next_batch = Instant::now() + options.batch;
        }
        notes.write_reasons()?;
        thread::sleep(TICK.min(options.every));
    }
    collector.flush(spool, metrics, notes.out)?;
    batch::make(spool, metrics, notes.out)?;
    Ok(())
}
