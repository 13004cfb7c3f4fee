//! The proof by drop: compares the heap that a value reports with the heap that its drop frees.
//!
//! Reading order: this file, `freed`, `blame` (the places of missed blocks) with `layouts`,
//! `compare`, `differences`.

mod freed;
mod layouts;
mod blame;
mod differences;
mod compare;

use std::any::type_name;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use memreport::__private::{Claim, Claimant, Found, Position, Recorder, Wrong, measure_recorded};
use memreport::{Field, MallocSizeOf};

use self::blame::{Blame, FieldRange, MeasuredBlock, Searched};
use self::compare::Comparison;
use self::differences::Differences;
use self::freed::freed_by;
use super::tracked::{awake_tracker, every_block_tracked};
use crate::collect::claims::claimed_address;

/// The errors in how a type measures itself, as a text for its author.
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

/// Measures a value, drops it, and compares the reported blocks with the freed blocks.
///
/// ```
/// dmd::global_allocator!();
///
/// # fn main() {
/// # if std::env::var_os("DMD").is_none() { return; } // A doc test is not a test binary.
/// assert!(dmd::testing::fully_reported(vec![String::from("heap")]).is_ok());
/// # }
/// ```
///
/// # Errors
///
/// If a block is missed, counted twice, not owned, or counted with another size; or if not all
/// blocks of this binary are tracked.
pub fn fully_reported<T: MallocSizeOf>(value: T) -> Result<(), Defects> {
    Proof::of(value).check()
}

/// A value to check, with the owners that share blocks with it.
#[derive(Debug)]
pub struct Proof<T> {
    value: T,
    shared: Vec<Shared>,
}

/// The blocks of an owner that outlives the value.
#[derive(Debug)]
struct Shared {
    blocks: HashSet<usize>,
    reason: &'static str,
}

impl<T: MallocSizeOf> Proof<T> {
    /// Creates a check of a value that shares no blocks.
    pub fn of(value: T) -> Self {
        Proof { value, shared: Vec::new() }
    }

    /// Declares that the value may count blocks that `owner` also owns, and the reason.
    ///
    /// These blocks need not be freed with the value.
    #[must_use]
    pub fn shared_with<O: ?Sized + MallocSizeOf>(
        mut self,
        owner: &O,
        reason: &'static str,
    ) -> Self {
        if let Some(tracker) = awake_tracker() {
            let recorder = ClaimRecorder::default();
            measure_recorded(owner, tracker, &recorder);
            let claims = recorder.claims.into_inner();
            let blocks = claims.iter().map(|claim| claim.address).collect();
            self.shared.push(Shared { blocks, reason });
        }
        self
    }

    /// Measures the value, drops it, and compares the reported blocks with the freed blocks.
    ///
    /// # Errors
    ///
    /// The same as [`fully_reported`]; also if no block is shared with a declared owner.
    pub fn check(self) -> Result<(), Defects> {
        let Proof { value, shared } = self;
        let tracker = every_block_tracked().map_err(|text| Defects { text })?;
        let recorder = ClaimRecorder::default();
        measure_recorded(&value, tracker, &recorder);
        let ranges = recorder.ranges.into_inner();
        let claims = recorder.claims.into_inner();
        let measured = |claim: &Claimed| MeasuredBlock { start: claim.address, field: claim.field };
        let measured: Vec<_> = claims.iter().map(measured).collect();
        let searched = Searched { tracker, ranges: &ranges, measured: &measured };
        let blame = Blame::find(&value, &searched);
        let freed = freed_by(|| drop(value));
        let type_name = type_name::<T>();
        let mut differences = Differences::default();
        let mut shared_blocks = HashSet::new();
        for Shared { blocks, reason } in shared {
            if claims.iter().all(|claim| !blocks.contains(&claim.address)) {
                let text =
                    format!("nothing is shared with the owner of which is said \"{reason}\"");
                differences.note(&text);
            }
            shared_blocks.extend(blocks);
        }
        Comparison {
            type_name,
            claims: &claims,
            freed: &freed,
            shared: &shared_blocks,
            blame: &blame,
        }
        .add_differences(&mut differences);
        let text = differences.into_text(type_name);
        if text.is_empty() { Ok(()) } else { Err(Defects { text }) }
    }
}

/// A claim of the measured value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    /// The start of the block, or the claimed address if no block starts there.
    pub(super) address: usize,
    /// The bytes that the claim added.
    pub(super) bytes: usize,
    pub(super) wrong: Option<Wrong>,
    pub(super) field: Option<&'static Field>,
    /// The usable bytes of the block that contains the address.
    pub(super) usable: usize,
}

/// Records the claims of a measurement, and the fields that it visits.
#[derive(Default)]
struct ClaimRecorder {
    claims: RefCell<Vec<Claimed>>,
    ranges: RefCell<Vec<FieldRange>>,
}

impl Recorder for ClaimRecorder {
    fn claimed(&self, claim: Claim, found: Found, claimant: Claimant) {
        if let Some(address) = claimed_address(claim, found) {
            let Found { bytes, block, wrong } = found;
            let usable = block.map_or(0, |block| block.usable);
            let claim = Claimed { address, bytes, wrong, field: claimant.field, usable };
            self.claims.borrow_mut().push(claim);
        }
    }

    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        self.ranges.borrow_mut().push(FieldRange { field, address, size });
    }

    fn position(&self) -> Position {
        Position { claims: self.claims.borrow().len(), reached: 0 }
    }

    fn roll_back(&self, position: Position) {
        self.claims.borrow_mut().truncate(position.claims);
    }
}
