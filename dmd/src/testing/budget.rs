//! Budgets for the allocations of a piece of code: of its thread and of threads that join.
//!
//! Other threads of the test harness do not count.

mod spent;
mod threads;

use std::fmt;

use super::tracked::{every_block_tracked, keep_stacks};
use super::watch::ThreadWatch;

use self::spent::Account;
pub use self::spent::Spent;
pub use self::threads::Threads;

/// Limits for the allocations of a piece of code. A new budget has no limits.
///
/// ```
/// use dmd::testing::Budget;
///
/// dmd::global_allocator!();
///
/// # fn main() {
/// # if std::env::var_os("DMD").is_none() { return; } // A doc test is not a test binary.
/// Budget::new().max_blocks(1).max_bytes(64).no_leak().assert(|_| {
///     let word = String::from("heap");
///     assert_eq!(word.len(), 4);
/// });
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a budget is checked by `check` or `assert`"]
pub struct Budget {
    max_blocks: Option<usize>,
    max_bytes: Option<usize>,
    max_peak: Option<usize>,
    no_leak: bool,
}

/// The limits of a budget that were exceeded, as a text.
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

impl Budget {
    /// Creates a budget without limits.
    pub const fn new() -> Self {
        Budget { max_blocks: None, max_bytes: None, max_peak: None, no_leak: false }
    }

    /// Limits the number of allocations and reallocations.
    pub const fn max_blocks(mut self, blocks: usize) -> Self {
        self.max_blocks = Some(blocks);
        self
    }

    /// Limits the sum of the usable bytes of all allocated blocks.
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Limits the high-water mark of the usable bytes that the code allocates.
    pub const fn max_peak(mut self, bytes: usize) -> Self {
        self.max_peak = Some(bytes);
        self
    }

    /// Requires that the same threads free all blocks that they allocate.
    pub const fn no_leak(mut self) -> Self {
        self.no_leak = true;
        self
    }

    /// Runs `work`, and returns its allocations.
    ///
    /// `work` gets a handle by which its threads join the budget. The value that it returns is
    /// dropped before the sums are taken.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded, if a thread that has joined is not finished, or if not all blocks of
    /// this binary are tracked.
    pub fn check<R>(&self, work: impl FnOnce(&Threads) -> R) -> Result<Spent, Exceeded> {
        every_block_tracked().map_err(|text| Exceeded { text })?;
        keep_stacks();
        let threads = Threads::default();
        let watch = ThreadWatch::begin();
        drop(work(&threads));
        let mut events = watch.end();
        let mut joined = threads.joined();
        events.append(&mut joined.events);
        events.sort_unstable_by_key(|event| event.number);
        let account = Account::of(&events);
        let mut text = self.exceeded(&account);
        if joined.running > 0 {
            text.push(format!("{} threads that joined in are not done", joined.running));
        }
        if text.is_empty() { Ok(account.spent) } else { Err(Exceeded { text: text.join("\n") }) }
    }

    /// Runs `work` like [`check`](Self::check), and panics on an error.
    ///
    /// # Panics
    ///
    /// If `check` returns an error; the message is the error's text.
    #[track_caller]
    pub fn assert<R>(&self, work: impl FnOnce(&Threads) -> R) -> Spent {
        match self.check(work) {
            Ok(spent) => spent,
            Err(exceeded) => panic!("{exceeded}"),
        }
    }

    /// Returns a line for each limit that is exceeded, and the places of a peak or a leak.
    fn exceeded(&self, account: &Account) -> Vec<String> {
        let Account { spent, at_peak, leaked } = account;
        let over = |limit: Option<usize>, number: usize, what: &str| {
            let limit = limit.filter(|limit| number > *limit)?;
            Some(format!("{number} {what}, and at most {limit} may be"))
        };
        let mut lines = Vec::new();
        lines.extend(over(self.max_blocks, spent.blocks, "blocks were allocated"));
        lines.extend(over(self.max_bytes, spent.bytes, "bytes were allocated"));
        if let Some(line) = over(self.max_peak, spent.peak, "bytes were in use at once") {
            lines.push(line);
            lines.extend(spent::lines(at_peak));
        }
        if self.no_leak && !leaked.is_empty() {
            let bytes: usize = spent.leaked.iter().sum();
            lines.push(format!("{bytes} bytes in {} blocks were not given back", leaked.len()));
            lines.extend(spent::lines(leaked));
        }
        lines
    }
}
