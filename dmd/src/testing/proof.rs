//! The proof by drop: what a value frees when it goes is what it owned.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;

use memreport::__private::{
    Claim, Claimant, Found, Recorder, Tracker, Wrong, measure_recorded, tracker,
};
use memreport::{Field, MallocSizeOf};

use super::blame::{Blame, Range};
use super::compare::{Comparison, Lines};
use super::watch::Watch;
use crate::track::events::Event;
use crate::track::journal::Stamped;
use crate::track::marks::subject;

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
    Proof::of(value).check()
}

/// A value whose measuring is to be proved, with what is known to be shared with others.
#[derive(Debug)]
pub struct Proof<T> {
    value: T,
    shared: Vec<Shared>,
}

/// The blocks of an owner that lives on.
#[derive(Debug)]
struct Shared {
    blocks: HashSet<usize>,
    reason: &'static str,
}

impl<T: MallocSizeOf> Proof<T> {
    /// Nothing of the value is shared.
    pub fn of(value: T) -> Self {
        Proof { value, shared: Vec::new() }
    }

    /// The value counts blocks that `owner` owns as well, for this reason: they need not be freed with the value.
    #[must_use]
    pub fn shared_with<O: ?Sized + MallocSizeOf>(
        mut self,
        owner: &O,
        reason: &'static str,
    ) -> Self {
        if let Some(tracker) = awake() {
            let claims = Claims::default();
            measure_recorded(owner, tracker, &claims);
            let claims = claims.claims.into_inner();
            let blocks = claims.iter().map(|claim| claim.address).collect();
            self.shared.push(Shared { blocks, reason });
        }
        self
    }

    /// Measures the value, drops it, and compares what it reported with what was freed.
    ///
    /// # Errors
    ///
    /// The defects that were found, or that nobody tracks the blocks of this binary.
    pub fn check(self) -> Result<(), Defects> {
        let Proof { value, shared } = self;
        let Some(tracker) = awake() else {
            return Err(Defects { text: not_tracked() });
        };
        if !tracker.tracks_every_block() {
            return Err(Defects { text: HAS_GAPS.to_owned() });
        }
        let claims = Claims::default();
        measure_recorded(&value, tracker, &claims);
        let ranges = claims.ranges.into_inner();
        let claims = claims.claims.into_inner();
        let measured = claims.iter().map(|claim| claim.address).collect();
        let blame = Blame::find(&value, &ranges, tracker, &measured);
        let freed = freed_by(|| drop(value));
        let type_name = type_name::<T>();
        let mut lines = Lines::default();
        let mut kept = HashSet::new();
        for Shared { blocks, reason } in shared {
            if claims.iter().all(|claim| !blocks.contains(&claim.address)) {
                let text =
                    format!("nothing is shared with the owner of which is said \"{reason}\"");
                lines.note(&text);
            }
            kept.extend(blocks);
        }
        let (claims, freed, kept, blame) = (&claims, &freed, &kept, &blame);
        Comparison { type_name, claims, freed, kept, blame }.add_differences(&mut lines);
        let text = lines.into_text(type_name);
        if text.is_empty() { Ok(()) } else { Err(Defects { text }) }
    }
}

/// The tracker, if it keeps the table.
pub(super) fn awake() -> Option<&'static dyn Tracker> {
    tracker().filter(|tracker| tracker.is_awake())
}

pub(super) const HAS_GAPS: &str = "the tracker does not know all blocks, so nothing can be proved: start the tests with another $DMD, \
    without --mode=profile, and do not stop tracking";

/// The message of every proof that cannot run.
pub(super) fn not_tracked() -> String {
    "nobody tracks the blocks of this program, so nothing can be proved: put `dmd::global_allocator!();` into the test \
     binary's first file (in a program that is no test, start it with `DMD=1`)"
        .to_owned()
}

/// A claim of the measured value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    /// The start of the block, or the claimed address where there is none.
    pub(super) address: usize,
    /// The bytes that were added.
    pub(super) bytes: usize,
    pub(super) wrong: Option<Wrong>,
    pub(super) field: Option<&'static Field>,
    /// The usable bytes of the block that the address is in.
    pub(super) usable: usize,
}

#[derive(Default)]
struct Claims {
    claims: RefCell<Vec<Claimed>>,
    ranges: RefCell<Vec<Range>>,
}

impl Recorder for Claims {
    fn claimed(&self, claim: Claim, found: Found, who: Claimant) {
        if let Some(address) = subject(claim, found) {
            let Found { bytes, block, wrong } = found;
            let usable = block.map_or(0, |block| block.usable);
            let claim = Claimed { address, bytes, wrong, field: who.field, usable };
            self.claims.borrow_mut().push(claim);
        }
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
pub(super) struct Freed {
    pub(super) address: usize,
    pub(super) usable: usize,
}

/// What this thread frees while `act` runs, of what lived before.
fn freed_by(act: impl FnOnce()) -> Vec<Freed> {
    let watch = Watch::begin();
    act();
    let events = watch.end();
    let mut born = HashMap::new();
    let mut freed = Vec::new();
    for Stamped { event, .. } in events {
        match event {
            Event::Born { address, .. } => {
                born.insert(address, ());
            }
            Event::Freed { address, block } => {
                if born.remove(&address).is_none() {
                    freed.push(Freed { address, usable: block.usable });
                }
            }
        }
    }
    freed
}
