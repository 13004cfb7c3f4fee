//! Explains the growth of resident memory in one sentence: a leak, a cache, the allocator, files,
//! or nothing unusual.

use super::account::{Anonymous, dark};
use super::snapshot::ProcessSnapshot;
use crate::report::numbers::size;
use crate::report::report_tree::shown_name;
use std::collections::BTreeMap;

/// The conclusion, with the numbers that support it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The cause, for programs.
    pub cause: Cause,
    /// One sentence for people.
    pub sentence: String,
}

/// The cause of the growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing stands out.
    NothingUnusual,
    /// Unreported heap memory.
    DarkMatter,
    /// Heap memory that a reporter names.
    Reported,
    /// Freed memory that the allocator keeps.
    Retained,
    /// Heap blocks of code other than Rust.
    OtherCode,
    /// Pages of mapped files.
    Files,
    /// Stacks of threads.
    Stacks,
    /// Memory shared with other processes.
    Shared,
    /// Memory that a reporter reports as mapped.
    Mapped,
    /// Unreported anonymous mappings.
    Anonymous,
    /// DMD's own tables.
    Tracker,
    /// The files do not contain the cause.
    Unknown,
}

impl Cause {
    /// Returns its name, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Cause::NothingUnusual => "nothing-unusual",
            Cause::DarkMatter => "dark-matter",
            Cause::Reported => "reported",
            Cause::Retained => "retained",
            Cause::OtherCode => "other-code",
            Cause::Files => "files",
            Cause::Stacks => "stacks",
            Cause::Shared => "shared",
            Cause::Mapped => "mapped",
            Cause::Anonymous => "anonymous",
            Cause::Tracker => "tracker",
            Cause::Unknown => "unknown",
        }
    }
}

/// The smallest growth that counts, in bytes and as a fraction of the resident memory before.
const MIN_GROWTH: i64 = 1 << 20;
const MIN_GROWTH_SHARE: i64 = 20;

/// The smallest growth of retained memory that counts: allocators take memory in megabytes.
const MIN_RETAINED_GROWTH: i64 = 4 << 20;

/// The smallest growth without an explanation that counts. The system's figures are read one after
/// the other, and between two readings a huge page of 2 MiB may come or go.
const MIN_UNEXPLAINED_GROWTH: i64 = 4 << 20;

/// The smallest amount that is unusual in a single snapshot.
const MIN_LEVEL: i64 = 16 << 20;

/// Resident bytes by cause, and by path if a reporter names them.
type Parts = BTreeMap<(Cause, String), i64>;

/// Divides resident memory by cause.
fn parts(snapshot: &ProcessSnapshot) -> Parts {
    let anonymous = Anonymous::of(snapshot);
    let other_code = snapshot.below("heap-committed/other-code");
    let allocated = snapshot.figure("heap-allocated").unwrap_or(0);
    let files = ["rss/program", "rss/libraries", "rss/files"].map(|path| snapshot.below(path));
    let parts = [
        (Cause::DarkMatter, dark(snapshot)),
        (Cause::Retained, (anonymous.heap - allocated - other_code).max(0)),
        (Cause::OtherCode, other_code + snapshot.below("c-heap/in-use").min(anonymous.c_heap)),
        (Cause::Files, files.iter().sum()),
        (Cause::Stacks, snapshot.below("rss/stacks")),
        (Cause::Shared, snapshot.below("rss/shared")),
        (Cause::Anonymous, anonymous.rest),
        (Cause::Tracker, anonymous.dmd),
        (Cause::Unknown, unexplained(snapshot)),
    ];
    let parts = parts.into_iter().map(|(cause, bytes)| ((cause, String::new()), bytes));
    let reported =
        snapshot.heap().iter().map(|(path, bytes)| ((Cause::Reported, path.clone()), *bytes));
    let mapped =
        anonymous.mapped.iter().map(|(path, bytes)| ((Cause::Mapped, path.clone()), *bytes));
    parts.chain(reported).chain(mapped).collect()
}

/// Returns the resident memory that the file neither maps nor counts as heap.
fn unexplained(snapshot: &ProcessSnapshot) -> i64 {
    let resident = snapshot.figure("resident").unwrap_or(0);
    let heap = snapshot.figure("heap-allocated").unwrap_or(0).max(snapshot.below("heap-committed"));
    resident - if snapshot.has("rss") { snapshot.below("rss") } else { heap }
}

/// Concludes from snapshots in the order of time.
///
/// # Panics
/// There is no snapshot.
pub fn of(snapshots: &[ProcessSnapshot]) -> Verdict {
    let [first, .., last] = snapshots else { return at(&snapshots[0]) };
    let (Some(before), Some(now)) = (first.figure("resident"), last.figure("resident")) else {
        return unknown();
    };
    let growth = Growth { snapshots, first, last, resident: now - before };
    let least = MIN_GROWTH.max(before / MIN_GROWTH_SHARE);
    let grown = growth.by_reason();
    let counts = |cause, bytes| {
        let least = match cause {
            Cause::Retained => least.max(MIN_RETAINED_GROWTH),
            Cause::Unknown => least.max(MIN_UNEXPLAINED_GROWTH),
            _ => least,
        };
        bytes >= least
    };
    let worth_a_word = grown.iter().filter(|((cause, _), bytes)| counts(*cause, **bytes));
    match worth_a_word.max_by_key(|(_, bytes)| **bytes) {
        Some(((cause, path), bytes)) => growth.because_of(*cause, path, *bytes),
        None => growth.nothing([before, now], grown.values().copied().max().unwrap_or(0)),
    }
}

/// The growth from the first snapshot to the last.
struct Growth<'m> {
    snapshots: &'m [ProcessSnapshot],
    first: &'m ProcessSnapshot,
    last: &'m ProcessSnapshot,
    resident: i64,
}

impl Growth<'_> {
    /// Returns the growth of each part.
    fn by_reason(&self) -> Parts {
        let mut grown = parts(self.last);
        for (key, before) in parts(self.first) {
            *grown.entry(key).or_default() -= before;
        }
        grown
    }

    fn because_of(&self, cause: Cause, path: &str, bytes: i64) -> Verdict {
        let grew = format!("grew by {}{}", size(bytes), self.span());
        let of_resident = self.of_resident(bytes);
        let path = shown_name(path);
        let is_of_heap = matches!(cause, Cause::Reported | Cause::DarkMatter);
        if is_of_heap && (self.first.is_incomplete || self.last.is_incomplete) {
            return self.incomplete();
        }
        let sentence = match cause {
            Cause::Reported => format!(
                "{path} {grew}{of_resident}: its reporter names it, so it is that structure, and neither a leak that is \
                 not reported nor the allocator"
            ),
            Cause::DarkMatter => format!(
                "dark matter {grew}{of_resident}: nobody reports it, so it is a leak or a missing reporter; {}",
                self.ask_dmd()
            ),
            Cause::Retained => return self.retained(bytes),
            Cause::OtherCode => format!(
                "the heap of code that is not Rust's {grew}{of_resident}: reporters and DMD do not see it; ask the C \
                 library's users, or valgrind"
            ),
            Cause::Files => format!(
                "the resident part of mapped files {grew}{of_resident}: the system takes such pages back when it needs \
                 them, so this is no leak of the heap"
            ),
            Cause::Stacks => format!(
                "stacks of threads {grew}{of_resident}, with {} threads more: look for threads that never end",
                self.threads()
            ),
            Cause::Shared => format!(
                "shared memory {grew}{of_resident}: look at what the program shares with other processes"
            ),
            Cause::Mapped => format!(
                "{path} {grew}{of_resident}: its reporter names it, memory that the program maps without the heap"
            ),
            Cause::Tracker => format!(
                "DMD's own tables {grew}{of_resident}: they grow with the number of blocks, and a program without DMD \
                 does not have them"
            ),
            Cause::Unknown => format!(
                "what these files do not explain {grew}{of_resident}: they say too little of what is mapped"
            ),
            Cause::Anonymous | Cause::NothingUnusual => format!(
                "mappings that stand for no file and that nobody reports {grew}{of_resident}: look for what the program \
                 or a library maps without the heap"
            ),
        };
        Verdict { cause, sentence }
    }

    /// Returns the way to find the allocation stacks of unreported blocks.
    fn ask_dmd(&self) -> &'static str {
        if self.last.blocks.is_some() {
            "`about-memory heap records --explain` of the dump beside the last file shows where it is \
             allocated"
        } else {
            "run the program with DMD=1 to see where it is allocated"
        }
    }

    fn retained(&self, bytes: i64) -> Verdict {
        let allocated = |snapshot: &ProcessSnapshot| snapshot.figure("heap-allocated").unwrap_or(0);
        let (before, now) = (allocated(self.first), allocated(self.last));
        let peak = self.snapshots.iter().map(allocated).max().unwrap_or(now);
        let peak = if peak - before.max(now) >= MIN_GROWTH.max(before / MIN_GROWTH_SHARE) {
            format!(", after a peak of {}", size(peak))
        } else {
            String::new()
        };
        let live = match now - before {
            change if change.abs() < MIN_GROWTH.max(before / MIN_GROWTH_SHARE) => {
                format!("live heap flat at {}", size(now))
            }
            change => format!("live heap {}", signed(change)),
        };
        let committed = self.last.below("heap-committed") - self.first.below("heap-committed");
        let remedy = remedy(self.last.allocator.as_deref());
        Verdict {
            cause: Cause::Retained,
            sentence: format!(
                "{live}{}, heap-committed {}, of which {} resident{peak}: the allocator retains what the program \
                 freed; {remedy}",
                self.span(),
                signed(committed),
                signed(bytes),
            ),
        }
    }

    /// Concludes from snapshots of which one misses reporters, as the heap seems to grow most.
    fn incomplete(&self) -> Verdict {
        let [before, now] = [self.first, self.last]
            .map(|snapshot| size(snapshot.figure("heap-allocated").unwrap_or(0)));
        Verdict {
            cause: Cause::Unknown,
            sentence: format!(
                "heap-allocated went from {before} to {now}{}; whether a reporter or dark matter grew is not known, \
                 since reporters were missed: take the snapshot again",
                self.span()
            ),
        }
    }

    fn nothing(&self, resident: [i64; 2], most: i64) -> Verdict {
        let [before, now] = resident.map(size);
        let grew = if most > 0 { format!(" by more than {}", size(most)) } else { String::new() };
        let sentence = format!(
            "nothing unusual: resident memory went from {before} to {now}{}, and no single cause of it grew{grew}",
            self.span()
        );
        Verdict { cause: Cause::NothingUnusual, sentence }
    }

    /// Returns ` in 10 min`, if the files have times.
    fn span(&self) -> String {
        let span = self.last.time_ms.zip(self.first.time_ms);
        span.and_then(|(last, first)| last.checked_sub(first))
            .map(|ms| format!(" in {}", time(ms)))
            .unwrap_or_default()
    }

    /// Compares a growth with the growth of resident memory.
    fn of_resident(&self, bytes: i64) -> String {
        match self.resident {
            resident if resident >= MIN_GROWTH => {
                let share = i128::from(bytes) * 100 / i128::from(resident);
                format!(", {share}% of what resident memory grew by")
            }
            resident => format!(", while resident memory changed by {}", signed(resident)),
        }
    }

    fn threads(&self) -> i64 {
        self.last.threads - self.first.threads
    }
}

/// Concludes from a single snapshot: only from unusual shares.
fn at(snapshot: &ProcessSnapshot) -> Verdict {
    let Some(resident) = snapshot.figure("resident") else { return unknown() };
    let parts = parts(snapshot);
    let bytes = |cause| -> i64 {
        parts.iter().filter(|((of, _), _)| *of == cause).map(|(_, bytes)| *bytes).sum()
    };
    let allocated = snapshot.figure("heap-allocated").unwrap_or(0);
    let is_most = |part: i64, whole: i64| part >= MIN_LEVEL && part > whole / 2;
    let of_resident = |part: i64| format!("{} of {} resident", size(part), size(resident));
    let (retained, dark) = (bytes(Cause::Retained), bytes(Cause::DarkMatter));
    let (files, anonymous) = (bytes(Cause::Files), bytes(Cause::Anonymous));
    let (cause, sentence) = match () {
        () if is_most(retained, resident) => (
            Cause::Retained,
            format!(
                "the allocator retains {}, with {} allocated: {}",
                of_resident(retained),
                size(allocated),
                remedy(snapshot.allocator.as_deref())
            ),
        ),
        () if dark >= MIN_LEVEL && dark > allocated / 4 => (
            Cause::DarkMatter,
            format!(
                "{} of {} heap-allocated are dark matter: run the program with DMD=1 to see where they are allocated",
                size(dark),
                size(allocated)
            ),
        ),
        () if is_most(files, resident) => (
            Cause::Files,
            format!(
                "{} are pages of mapped files, which the system takes back when it needs them",
                of_resident(files)
            ),
        ),
        () if is_most(anonymous, resident) => (
            Cause::Anonymous,
            format!(
                "{} are mappings that stand for no file and that nobody reports",
                of_resident(anonymous)
            ),
        ),
        () => (
            Cause::NothingUnusual,
            format!(
                "nothing unusual in this snapshot of {} resident; a second one, taken later, tells what grows",
                size(resident)
            ),
        ),
    };
    Verdict { cause, sentence }
}

fn unknown() -> Verdict {
    Verdict {
        cause: Cause::Unknown,
        sentence: "the files do not say how much memory is resident, so nothing can be said of it"
            .into(),
    }
}

fn remedy(allocator: Option<&str>) -> &'static str {
    match allocator {
        Some("glibc") => {
            "`malloc_trim(0)`, or `about-memory minimize`, gives whole pages back, and `MALLOC_ARENA_MAX=2` keeps arenas few"
        }
        Some("jemalloc") => {
            "it gives whole pages back by itself, sooner with a smaller `dirty_decay_ms`, and none that a block is on"
        }
        Some("mimalloc") => {
            "`mi_collect(true)` gives whole pages back, `MIMALLOC_PURGE_DELAY=0` does so at once, and none that a block is on"
        }
        _ => "see its documentation for how to make it give pages back",
    }
}

fn signed(bytes: i64) -> String {
    format!("{}{}", if bytes < 0 { "" } else { "+" }, size(bytes))
}

/// Formats a time: `850 ms`, `42 s`, `10 min`, `3.5 h`.
pub(crate) fn time(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{}.{} h", ms / 3_600_000, ms % 3_600_000 / 360_000),
    }
}

#[cfg(test)]
mod tests;
