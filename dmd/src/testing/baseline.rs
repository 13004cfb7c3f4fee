//! A baseline for checks of classified memory: only blocks that a test allocates since count.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::Threads;
use super::classified::{Checked, failures};
use super::limits::Limits;
use super::tracked::{NOT_TRACKED, every_block_tracked, keep_stacks};
use super::watch::ThreadWatch;
use memreport::Collector;

use crate::collect::Dump;
use crate::collect::findings::threads;
use crate::collect::holders::enabled::without_holders;
use crate::collect::restriction::{CountedBlock, Restriction};
use crate::event::events::Event;
use crate::event::journal::NumberedEvent;

/// The beginning of a test: a check counts the blocks that are allocated from here on.
///
/// Blocks of the calling thread count, of threads that [join in](Self::threads), and of threads
/// that are [named](Self::and_threads_named). The test harness and tests on other threads do not.
///
/// ```
/// use std::sync::Mutex;
///
/// dmd::global_allocator!();
///
/// static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());
///
/// memreport::reporter!("explicit/words", WORDS, "All words.");
///
/// # fn main() {
/// # if std::env::var_os("DMD").is_none() { return; } // A doc test is not a test binary.
/// let since = dmd::testing::Baseline::new();
/// WORDS.lock().unwrap().extend(["memory".repeat(9), "heap".repeat(9)]);
/// since.assert_classified(5.0); // at most 5 % of these blocks is unreported
/// # }
/// ```
///
/// While a baseline exists, every block of the program gets its stack, for the messages. Baselines
/// of a thread end in the opposite order in which they begin.
#[derive(Debug)]
#[must_use = "a baseline is checked by `assert_classified` or `check`"]
pub struct Baseline {
    watch: Option<ThreadWatch>,
    threads: Threads,
    names: Vec<String>,
    /// The watch belongs to this thread.
    _on_this_thread: PhantomData<*const ()>,
}

/// The longest time to wait for a value that another test has locked.
const WAIT: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(2);

impl Default for Baseline {
    fn default() -> Self {
        Baseline::new()
    }
}

impl Baseline {
    /// Begins to count the blocks that this thread allocates.
    pub fn new() -> Self {
        keep_stacks();
        let (threads, names) = (Threads::default(), Vec::new());
        // Last, so that the baseline's own blocks are older.
        let watch = Some(ThreadWatch::begin());
        Baseline { watch, threads, names, _on_this_thread: PhantomData }
    }

    /// Also counts all blocks of the live threads with this name, from their beginning on.
    ///
    /// For threads of a library, which cannot join in. Linux keeps 15 bytes of a name.
    pub fn and_threads_named(mut self, name: &str) -> Self {
        let name = || name.bytes().take(15).map(char::from).collect();
        match &self.watch {
            Some(watch) => watch.paused(|_| self.names.push(name())),
            None => self.names.push(name()),
        }
        self
    }

    /// Returns a handle by which other threads join in: `threads.join_in(|| …)`.
    #[must_use]
    pub fn threads(&self) -> Threads {
        self.threads.clone()
    }

    /// Asserts that the reporters cover the blocks that were allocated since the baseline and are
    /// live.
    ///
    /// `limits` is a share in percent, or [`Limits`].
    ///
    /// # Panics
    ///
    /// If a limit is exceeded, or one of these blocks is reported twice or wrongly; the message
    /// lists them. Also if not all blocks of the binary are tracked.
    #[track_caller]
    pub fn assert_classified(&self, limits: impl Into<Limits>) {
        if let Err(text) = self.check(limits) {
            panic!("{text}");
        }
    }

    /// Checks like [`assert_classified`](Self::assert_classified).
    ///
    /// # Errors
    ///
    /// Where `assert_classified` panics; the error is its message.
    pub fn check(&self, limits: impl Into<Limits>) -> Result<(), String> {
        let limits = limits.into();
        every_block_tracked()?;
        let Some(watch) = &self.watch else { return Ok(()) };
        watch.paused(|events| {
            let joined = self.joined()?;
            let restriction =
                Restriction::new(live_blocks(events, &joined), self.numbers_of_threads());
            let begin = Instant::now();
            let take = || restriction.clone().run(|| Collector::default().quick().snapshot());
            loop {
                // The search for holders takes most of the time, and only the message needs it.
                let snapshot = without_holders(take);
                let Some(dump) = Dump::of(&snapshot) else { return Err(NOT_TRACKED.to_owned()) };
                if Checked::since_baseline(dump).is_within(limits, dump) {
                    return Ok(());
                }
                // A reporter can have found its value locked by another test.
                if snapshot.missed().is_empty() || begin.elapsed() > WAIT {
                    break;
                }
                std::thread::sleep(RETRY);
            }
            let snapshot = take();
            let Some(dump) = Dump::of(&snapshot) else { return Err(NOT_TRACKED.to_owned()) };
            let text = failures(&Checked::since_baseline(dump), dump, limits);
            // The snapshot's notes are of the whole heap, also of other tests'.
            let missed = snapshot.missed().iter().map(|missed| format!("\nmissed: {missed}"));
            if text.is_empty() { Ok(()) } else { Err(text + &missed.collect::<String>()) }
        })
    }

    /// Returns the events of the threads that have joined, or an error if one still runs.
    fn joined(&self) -> Result<Vec<NumberedEvent>, String> {
        let joined = self.threads.joined();
        match joined.running {
            0 => Ok(joined.events.clone()),
            running => Err(format!("{running} threads that joined in are not done")),
        }
    }

    /// Returns the tracker's numbers of the live threads with one of the names.
    fn numbers_of_threads(&self) -> Vec<u32> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let is_named = |name: &String| self.names.contains(name);
        let named =
            threads().into_iter().filter(|thread| thread.name.as_ref().is_some_and(is_named));
        named.map(|thread| thread.number).collect()
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.end();
        }
    }
}

/// Returns the blocks that these events leave live. The collection leaves out those that other
/// threads have freed.
fn live_blocks(own: &[NumberedEvent], joined: &[NumberedEvent]) -> Vec<CountedBlock> {
    let mut events: Vec<_> = own.iter().chain(joined).collect();
    events.sort_unstable_by_key(|event| event.number);
    let mut live = HashMap::new();
    for NumberedEvent { event, .. } in events {
        match *event {
            Event::Allocated { address, block } => {
                let (requested, usable, site) = (block.requested, block.usable, block.site);
                live.insert(address, CountedBlock { address, requested, usable, site });
            }
            Event::Freed { address, .. } => {
                live.remove(&address);
            }
        }
    }
    live.into_values().collect()
}
