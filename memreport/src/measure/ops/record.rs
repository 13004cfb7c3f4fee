//! Claims blocks of the tracker's table, and records the claims.

use super::Ops;
use crate::tracker::Tracker;
use crate::tracker::claim::{Claim, Found};
use crate::tracker::claimant::Claimant;

impl Ops<'_> {
    /// Claims a block. Returns the bytes that this added.
    #[inline]
    pub(super) fn claim(&self, tracker: &dyn Tracker, claim: Claim) -> usize {
        self.record(claim, tracker.look_up(claim))
    }

    #[inline]
    pub(super) fn claimant(&self) -> Claimant {
        Claimant { reporter: self.collection.reporter.get(), field: self.field.get() }
    }

    /// Records a claim and counts its bytes. Returns them.
    #[inline]
    pub(super) fn record(&self, claim: Claim, found: Found) -> usize {
        if let Some(pending) = self.pending {
            self.record_later(pending, claim, found);
        }
        if found.bytes > 0 {
            self.count(found.bytes);
        }
        found.bytes
    }
}
