//! The proof by drop: what a value frees when it goes is what it owned.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use memreport::__private::{Claim, Found, Recorder, Who, Wrong, measure_recorded, tracker};
use memreport::{Field, MallocSizeOf};

use super::blame::{Blame, Range};
use crate::track::journal::{Event, Journal};
use crate::track::thread::Thread;

/// What is wrong with a type's measuring, as a text for the one who has to mend it.
#[derive(Clone, PartialEq, Eq)]
pub struct Defects {
    text: String,
}

impl fmt::Display for Defects {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Debug for Defects {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Defects {}

/// Measures the value, drops it, and compares what it reported with what was freed.
///
/// # Errors
///
/// The defects that were found, or that nobody tracks the blocks of this binary.
pub fn fully_reported<T: MallocSizeOf>(value: T) -> Result<(), Defects> {
    let Some(tracker) = tracker().filter(|tracker| tracker.is_awake()) else {
        return Err(Defects { text: not_tracked() });
    };
    if !tracker.knows_all() {
        return Err(Defects { text: HAS_GAPS.to_owned() });
    }
    let claims = Claims::default();
    measure_recorded(&value, tracker, &claims);
    let ranges = claims.ranges.into_inner();
    let claims = claims.claims.into_inner();
    let blame =
        Blame::find(&value, &ranges, tracker, &claims.iter().map(|claim| claim.address).collect());
    let freed = freed_by(|| drop(value));
    let text = describe(type_name::<T>(), &claims, &freed, &blame);
    if text.is_empty() { Ok(()) } else { Err(Defects { text }) }
}

const HAS_GAPS: &str = "the tracker does not know all blocks, so nothing can be proved: start the tests with another $DMD, \
    without --mode=profile, and do not stop tracking";

/// The message of every proof that cannot run.
pub(super) fn not_tracked() -> String {
    "nobody tracks the blocks of this program, so nothing can be proved: put `dmd::global_allocator!();` into the test \
     binary's first file (in a program that is no test, start it with `DMD=1`)"
        .to_owned()
}

/// A claim of the measured value.
#[derive(Clone, Copy, Debug)]
struct Claimed {
    address: usize,
    bytes: usize,
    usable: usize,
    wrong: Option<Wrong>,
    field: Option<&'static Field>,
}

#[derive(Default)]
struct Claims {
    claims: RefCell<Vec<Claimed>>,
    ranges: RefCell<Vec<Range>>,
}

impl Recorder for Claims {
    fn claimed(&self, claim: Claim, found: Found, who: Who) {
        if found.block.is_none() && found.wrong.is_none() {
            return;
        }
        let block = found.block.filter(|_| found.wrong != Some(Wrong::Interior));
        self.claims.borrow_mut().push(Claimed {
            address: block.map_or(claim.address, |block| block.start),
            bytes: found.bytes,
            usable: block.map_or(0, |block| block.usable),
            wrong: found.wrong,
            field: who.field,
        });
    }

    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        self.ranges.borrow_mut().push(Range { field, address, size });
    }

    fn position(&self) -> usize {
        self.claims.borrow().len()
    }

    fn roll_back(&self, position: usize) {
        self.claims.borrow_mut().truncate(position);
    }
}

/// A block that was freed, and was not born meanwhile.
#[derive(Clone, Copy, Debug)]
struct Freed {
    address: usize,
    usable: usize,
}

/// What this thread frees while `act` runs, of what lived before.
fn freed_by(act: impl FnOnce()) -> Vec<Freed> {
    let journal = Watched::begin();
    act();
    let events = journal.end();
    let mut born = HashMap::new();
    let mut freed = Vec::new();
    for event in events {
        match event {
            Event::Born { address, .. } => {
                born.insert(address, ());
            }
            Event::Freed { address, usable, .. } => {
                if born.remove(&address).is_none() {
                    freed.push(Freed { address, usable });
                }
            }
        }
    }
    freed
}

/// Journals that are not in use. A thread's hook holds a reference, so they live for ever, and are used again.
static POOL: Mutex<Vec<&'static Journal>> = Mutex::new(Vec::new());

struct Watched {
    journal: &'static Journal,
}

impl Watched {
    fn begin() -> Self {
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let journal = pooled.unwrap_or_else(|| Box::leak(Box::new(Journal::new())));
        journal.take();
        let _ = Thread::current(|thread| thread.journal.set(Some(journal)));
        Watched { journal }
    }

    fn end(self) -> Vec<Event> {
        let _ = Thread::current(|thread| thread.journal.set(None));
        self.journal.take()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // The value's destructor may have panicked.
        let _ = Thread::current(|thread| thread.journal.set(None));
        POOL.lock().unwrap_or_else(PoisonError::into_inner).push(self.journal);
    }
}

fn describe(type_name: &str, claims: &[Claimed], freed: &[Freed], blame: &Blame) -> String {
    let owned: HashMap<usize, usize> =
        freed.iter().map(|block| (block.address, block.usable)).collect();
    let mut by_address: HashMap<usize, Vec<&Claimed>> = HashMap::new();
    for claim in claims {
        by_address.entry(claim.address).or_default().push(claim);
    }
    let mut lines = Lines::default();
    for block in freed.iter().filter(|block| !by_address.contains_key(&block.address)) {
        lines.add(format!("{} is not measured", blame.of(block.address)), block.usable, "missed");
    }
    let mut claimed: Vec<_> = by_address.into_iter().collect();
    claimed.sort_unstable_by_key(|(address, _)| *address);
    for (address, claims) in claimed {
        let place = |claim: &Claimed| {
            claim.field.map_or_else(|| type_name.to_owned(), |field| format!("{field:?}"))
        };
        if let [first, second, ..] = claims[..] {
            let text = format!(
                "one block is counted {} times: by {} and by {}",
                claims.len(),
                place(first),
                place(second)
            );
            lines.add(text, claims[1..].iter().map(|claim| claim.bytes).sum(), "counted too often");
        }
        let first = claims[0];
        match first.wrong {
            Some(Wrong::NonHeap) => lines.add(
                format!("{} counts what is not on the heap", place(first)),
                first.bytes,
                "counted",
            ),
            Some(Wrong::Interior) => {
                lines.add(
                    format!("{} counts from inside a block, not from its start", place(first)),
                    first.bytes,
                    "counted",
                );
            }
            Some(Wrong::Partial) => {
                let text = format!(
                    "{} counts {} bytes of a block that has {}",
                    place(first),
                    first.bytes,
                    first.usable
                );
                lines.add(text, first.usable.abs_diff(first.bytes), "apart");
            }
            // The proof runs only where all blocks are known.
            Some(Wrong::Untracked) => {}
            None if !owned.contains_key(&address) => {
                lines.add(
                    format!("{} counts a block that the value does not own", place(first)),
                    first.bytes,
                    "counted",
                );
            }
            None => {}
        }
    }
    lines.into_text(type_name)
}

/// Equal defects, together.
#[derive(Default)]
struct Lines {
    lines: Vec<(String, &'static str, usize, usize)>,
}

impl Lines {
    fn add(&mut self, text: String, bytes: usize, verb: &'static str) {
        match self.lines.iter_mut().find(|line| line.0 == text && line.1 == verb) {
            Some(line) => {
                line.2 += 1;
                line.3 += bytes;
            }
            None => self.lines.push((text, verb, 1, bytes)),
        }
    }

    fn into_text(mut self, type_name: &str) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        self.lines.sort_by_key(|line| std::cmp::Reverse(line.3));
        let lines = self.lines.iter().map(|(text, verb, blocks, bytes)| {
            format!(
                "  {text}: {bytes} bytes in {blocks} block{} {verb}",
                if *blocks == 1 { "" } else { "s" }
            )
        });
        let lines: Vec<_> = lines.collect();
        format!(
            "`{type_name}` does not report exactly the heap that it owns:\n{}",
            lines.join("\n")
        )
    }
}
