//! Budgets for what a piece of code allocates: for the thread that runs it and those that join in, whatever the test harness does.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::proof::{HAS_GAPS, awake, not_tracked};
use super::watch::Watch;
use crate::track::events::Event;
use crate::track::journal::Stamped;

/// What a piece of code may allocate. Without limits it may allocate anything.
///
/// ```
/// use dmd::testing::Budget;
///
/// dmd::global_allocator!();
///
/// # fn main() {
/// # if std::env::var_os("DMD").is_none() { return; } // A doc test is not a test binary: nobody wakes DMD.
/// Budget::new().max_blocks(1).max_bytes(64).no_leak().assert(|_| {
///     let word = String::from("heap");
///     assert_eq!(word.len(), 4);
/// });
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a budget holds nobody to it by itself"]
pub struct Budget {
    max_blocks: Option<usize>,
    max_bytes: Option<usize>,
    max_peak: Option<usize>,
    no_leak: bool,
}

/// What a piece of code has allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// How often memory was allocated; a reallocation counts as well.
    pub blocks: usize,
    /// The usable bytes of all that was allocated, at once or not.
    pub bytes: usize,
    /// The most of these bytes that were in use at once.
    pub peak: usize,
    /// The usable bytes of each block that is still in use, the biggest first.
    pub left: Vec<usize>,
}

/// How a budget was not kept, as a text.
#[derive(Clone, PartialEq, Eq)]
pub struct Exceeded {
    text: String,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Debug for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Exceeded {}

/// Lets further threads join in: what they allocate counts as well.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    heard: Arc<Mutex<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    /// Threads that have joined in and are not done.
    at_work: usize,
    events: Vec<Stamped>,
}

impl Threads {
    /// Runs `work` on this thread, which was started by the code under test, and counts what it allocates.
    pub fn join_in<R>(&self, work: impl FnOnce() -> R) -> R {
        let _joined = Joined::new(self);
        work()
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that has joined in, until its work is done or has panicked: what it allocated counts either way.
struct Joined<'t> {
    threads: &'t Threads,
    watch: Option<Watch>,
}

impl<'t> Joined<'t> {
    fn new(threads: &'t Threads) -> Self {
        threads.heard().at_work += 1;
        Joined { threads, watch: Some(Watch::begin()) }
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        let events = self.watch.take().map(Watch::end).unwrap_or_default();
        let mut heard = self.threads.heard();
        heard.at_work -= 1;
        heard.events.extend(events);
    }
}

impl Budget {
    /// No limits.
    pub const fn new() -> Self {
        Budget { max_blocks: None, max_bytes: None, max_peak: None, no_leak: false }
    }

    /// Memory is allocated so many times at most; a reallocation counts as well.
    pub const fn max_blocks(mut self, blocks: usize) -> Self {
        self.max_blocks = Some(blocks);
        self
    }

    /// So many usable bytes are allocated at most, at once or not.
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// So many usable bytes are in use at once at most, of what is allocated meanwhile.
    pub const fn max_peak(mut self, bytes: usize) -> Self {
        self.max_peak = Some(bytes);
        self
    }

    /// All that is allocated is given back, by these threads.
    pub const fn no_leak(mut self) -> Self {
        self.no_leak = true;
        self
    }

    /// Runs `work`, which is lent a way for its threads to join in, and says what was spent. What `work` returns is dropped
    /// before that.
    ///
    /// # Errors
    ///
    /// The limits that were not kept, or that nobody tracks the blocks of this binary.
    pub fn check<R>(&self, work: impl FnOnce(&Threads) -> R) -> Result<Spent, Exceeded> {
        let Some(tracker) = awake() else {
            return Err(Exceeded { text: not_tracked() });
        };
        if !tracker.tracks_every_block() {
            return Err(Exceeded { text: HAS_GAPS.to_owned() });
        }
        let threads = Threads::default();
        let watch = Watch::begin();
        drop(work(&threads));
        let mut events = watch.end();
        let mut heard = threads.heard();
        events.append(&mut heard.events);
        events.sort_unstable_by_key(|event| event.number);
        let spent = Spent::of(&events);
        let mut text = self.broken(&spent);
        if heard.at_work > 0 {
            text.push(format!("{} threads that joined in are not done", heard.at_work));
        }
        if text.is_empty() { Ok(spent) } else { Err(Exceeded { text: text.join("\n") }) }
    }

    /// As [`check`](Self::check).
    ///
    /// # Panics
    ///
    /// Where that is an error, with its text.
    #[track_caller]
    pub fn assert<R>(&self, work: impl FnOnce(&Threads) -> R) -> Spent {
        match self.check(work) {
            Ok(spent) => spent,
            Err(exceeded) => panic!("{exceeded}"),
        }
    }

    /// A line for each limit that was not kept.
    fn broken(&self, spent: &Spent) -> Vec<String> {
        let limits = [
            (self.max_blocks, spent.blocks, "blocks were allocated"),
            (self.max_bytes, spent.bytes, "bytes were allocated"),
            (self.max_peak, spent.peak, "bytes were in use at once"),
        ];
        let mut lines: Vec<String> = limits
            .into_iter()
            .filter_map(|(limit, number, what)| {
                let limit = limit.filter(|limit| number > *limit)?;
                Some(format!("{number} {what}, and at most {limit} may be"))
            })
            .collect();
        if self.no_leak && !spent.left.is_empty() {
            let bytes: usize = spent.left.iter().sum();
            let sizes: Vec<_> = spent.left.iter().take(LISTED).map(ToString::to_string).collect();
            let more = if spent.left.len() > LISTED { ", …" } else { "" };
            lines.push(format!(
                "{bytes} bytes in {} blocks were not given back: of {}{more}",
                spent.left.len(),
                sizes.join(", ")
            ));
        }
        lines
    }
}

/// How many blocks a failure lists.
const LISTED: usize = 10;

impl Spent {
    /// Adds up events in their order.
    fn of(events: &[Stamped]) -> Self {
        let mut spent = Spent::default();
        let mut live = HashMap::new();
        let mut in_use = 0;
        for Stamped { event, .. } in events {
            match *event {
                Event::Born { address, block } => {
                    let usable = block.usable;
                    spent.blocks += 1;
                    spent.bytes += usable;
                    in_use += usable;
                    spent.peak = spent.peak.max(in_use);
                    live.insert(address, usable);
                }
                // What lived before is not of this budget.
                Event::Freed { address, .. } => in_use -= live.remove(&address).unwrap_or(0),
            }
        }
        spent.left = live.into_values().collect();
        spent.left.sort_unstable_by(|one, other| other.cmp(one));
        spent
    }
}
